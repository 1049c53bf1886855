import type { QuestionsJson } from './questions.ts'

export interface Example {
  readonly title: string
  readonly text: string
  readonly questions: QuestionsJson
  /** Draws the image that goes with it. */
  readonly draw?: (context: OffscreenCanvasRenderingContext2D, size: number) => void
}

const choice = (instructions: string, ...criteria: string[]) => ({ type: 'choice', instructions, criteria }) as const
const yesNo = (instructions: string) => ({ type: 'noul', instructions }) as const
const score = (instructions: string, ...criteria: string[]) => ({ type: 'score', instructions, criteria }) as const

/** What the small model tells of an image. */
const colours = {
  colour: choice('What color is shown?', 'red', 'green', 'blue', 'yellow', 'black'),
  light: choice('Is the image bright or dark?', 'bright', 'dark'),
}

export const examples: readonly Example[] = [
  {
    title: 'Support letter',
    text: 'My card was charged twice for the same purchase. I want my money back.',
    questions: {
      team: choice('Which department should handle this?', 'billing', 'technical', 'sales'),
      refund: yesNo('Does the customer want a refund?'),
      urgency: score('How urgent is this?', 'can wait', 'normal', 'high', 'critical'),
    },
  },
  {
    title: 'Review',
    text: 'The hotel was clean and the staff were friendly, but the breakfast was cold and the room far too loud.',
    questions: {
      sentiment: choice('What is the sentiment of this review?', 'positive', 'neutral', 'negative'),
      happy: yesNo('Is the customer happy?'),
    },
  },
  {
    title: 'Spam?',
    text: 'Congratulations! You have won a free cruise. Click the link now to claim your prize.',
    questions: {
      spam: choice('Is this message spam?', 'spam', 'not spam'),
      kind: choice('What kind of email is this?', 'advertisement', 'invoice', 'newsletter', 'personal'),
    },
  },
  {
    title: 'Smart home',
    text: 'It is getting dark in here, turn on the lamp in the kitchen please.',
    questions: {
      action: choice('Which action should be taken?', 'lights on', 'lights off', 'heating up', 'play music'),
      room: choice('Which room is meant?', 'kitchen', 'bedroom', 'bathroom', 'garage'),
    },
  },
  {
    title: 'Stated facts',
    text: 'Order number: 4471. Colour: green. Size: large. Ship to: Oslo. Paid: yes.',
    questions: {
      colour: choice('What is the colour?', 'red', 'green', 'blue', 'black'),
      city: choice('Where is it shipped to?', 'Oslo', 'Lima', 'Cairo'),
      oslo: yesNo('Does the text mention Oslo?'),
    },
  },
  {
    title: 'Which language?',
    text: 'Wo ist der nächste Bahnhof, bitte?',
    questions: {
      language: choice('Which language is this text written in?', 'English', 'German', 'French', 'Spanish'),
    },
  },
  {
    title: 'A red disc',
    text: 'An image.',
    questions: colours,
    draw(context, size) {
      context.fillStyle = '#d22'
      context.arc(size / 2, size / 2, size / 3, 0, 2 * Math.PI)
      context.fill()
    },
  },
  {
    title: 'A dark picture',
    text: 'An image.',
    questions: colours,
    draw(context, size) {
      context.fillStyle = '#141418'
      context.fillRect(0, 0, size, size)
    },
  },
]

const SIZE = 128

/** The image of an example, drawn on white. */
export async function drawn({ draw }: Example): Promise<Blob | undefined> {
  if (!draw) return undefined
  const canvas = new OffscreenCanvas(SIZE, SIZE)
  const context = canvas.getContext('2d')!
  context.fillStyle = '#fff'
  context.fillRect(0, 0, SIZE, SIZE)
  draw(context, SIZE)
  return canvas.convertToBlob()
}
