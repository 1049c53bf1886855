import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { numberStyleOf, readNumbers, spokenNumbers } from '../../src/text/numbers.ts'

const table: [string, string][] = [
  // decimals, signs, long numbers
  ['Pi is 3.14159.', 'Pi is three point one four one five nine.'],
  ['It fell to 0.5, then .25', 'It fell to zero point five, then point two five'],
  ['The checkpoint is a.5', 'The checkpoint is a point five'],
  ['1,234,567.5 in all', 'one million two hundred thirty-four thousand five hundred sixty-seven point five in all'],
  ['It is -7 or +7.', 'It is minus seven or plus seven.'],
  ['agent 007', 'agent zero zero seven'],
  ['6.02e23', 'six point zero two times ten to the twenty-three'],
  ['1 000 000 and 10 000', 'one million and ten thousand'],
  ['x >= 5', 'x at least five'],
  ['x² + y³', 'x squared + y cubed'],
  ['3 + 4 = 7', 'three plus four equals seven'],
  ['9 - 4 = 5', 'nine minus four equals five'],
  ['１２３ and ٣', 'one hundred twenty-three and three'],
  // percent
  ['50% off', 'fifty percent off'],
  ['up 2.5 %', 'up two point five percent'],
  ['5–10%', 'five to ten percent'],
  // times
  ['at 5:30 pm', 'at five thirty PM'],
  ['at 17:45.', 'at seventeen forty-five.'],
  ['at 9:05', 'at nine oh five'],
  ['at 5:00', "at five o'clock"],
  ['at 7am', 'at seven A M'],
  ['It closes at 5 p.m.', 'It closes at five PM.'],
  ['at 5 p.m. on Monday', 'at five PM on Monday'],
  ['from 9:00-17:30', "from nine o'clock to seventeen thirty"],
  ['10:30 - 11 am', 'ten thirty to eleven A M'],
  ['9am–5pm', 'nine A M to five PM'],
  ['in 16:9', 'in sixteen to nine'],
  // years and decades
  ['in 1999', 'in nineteen ninety-nine'],
  ['in 2005', 'in two thousand five'],
  ['in 1900', 'in nineteen hundred'],
  ['since 1066', 'since ten sixty-six'],
  ['the 1990s', 'the nineteen nineties'],
  ["the '90s and 80s", 'the nineties and eighties'],
  ['2000 people', 'two thousand people'],
  ['44 BC', 'forty-four B C'],
  // dates
  ['on 2024-03-04', 'on March fourth, twenty twenty-four'],
  ['on 12/25/2024', 'on December twenty-fifth, twenty twenty-four'],
  ['on 25.12.2024', 'on December twenty-fifth, twenty twenty-four'],
  ['on 3/4/2024', 'on three slash four slash twenty twenty-four'],
  ['March 3, 2024 was', 'March third, twenty twenty-four was'],
  ['on 14 July 1789', 'on the fourteenth of July, seventeen eighty-nine'],
  ['the 4th of July', 'the fourth of July'],
  ['2024-05-06T17:45:00Z', 'May sixth, twenty twenty-four, seventeen forty-five'],
  ['Sept. 11', 'September eleventh'],
  ['in May 2010', 'in May twenty ten'],
  ['Jan 3-5', 'January third to fifth'],
  // money
  ['$3.50', 'three dollars and fifty cents'],
  ['$1', 'one dollar'],
  ['€12', 'twelve euros'],
  ['12 €', 'twelve euros'],
  ['£1m', 'one million pounds'],
  ['£1.01', 'one pound and one penny'],
  ['$0.99', 'ninety-nine cents'],
  ['$1,234.56', 'one thousand two hundred thirty-four dollars and fifty-six cents'],
  ['$3.5 million', 'three point five million dollars'],
  ['$10–$20', 'ten to twenty dollars'],
  ['-$5', 'minus five dollars'],
  ['$9/month', 'nine dollars per month'],
  ['It costs $5.', 'It costs five dollars.'],
  ['€3,50', 'three euros and fifty cents'],
  ['$500k-$1m', 'five hundred thousand dollars to one million dollars'],
  // ordinals, fractions, ranges
  ['the 1st and 22nd', 'the first and twenty-second'],
  ['the 112th', 'the one hundred twelfth'],
  ['1/2 and 3/4', 'one half and three quarters'],
  ['2 1/2 cups', 'two and one half cups'],
  ['1½ cups', 'one and one half cups'],
  ['open 24/7', 'open twenty-four seven'],
  ['the 1st-3rd', 'the first to third'],
  ['a 3.5/5', 'a three point five out of five'],
  ['4-4-2', 'four four two'],
  ['5 - 3', 'five - three'],
  ['pages 10-20', 'pages ten to twenty'],
  ['2019–2021', 'twenty nineteen to twenty twenty-one'],
  ['2019-21', 'twenty nineteen to twenty-one'],
  ['pp. 5-7', 'pages five to seven'],
  // units
  ['5 kg', 'five kilograms'],
  ['1 kg', 'one kilogram'],
  ['3.2 km/h', 'three point two kilometers per hour'],
  ['20°C', 'twenty degrees Celsius'],
  ['-5°', 'minus five degrees'],
  ['10 GB', 'ten gigabytes'],
  ['120 m²', 'one hundred twenty square meters'],
  ['9.8 m/s²', 'nine point eight meters per second squared'],
  ['5\'6" tall', 'five feet six inches tall'],
  ['10-20 kg', 'ten to twenty kilograms'],
  ['a 100m race', 'a one hundred meters race'],
  ['6 ft 2 in', 'six feet two inches'],
  ['1/2 kg', 'one half of a kilogram'],
  ['40°26′ N', 'forty degrees twenty-six minutes N'],
  ['40°N', 'forty degrees N'],
  ['3×10^8', 'three times ten to the eight'],
  ['18+ only', 'eighteen plus only'],
  ['5bn trees', 'five billion trees'],
  ['2.30 pm', 'two thirty PM'],
  ['the 2010/11 season', 'the twenty ten eleven season'],
  ['a 50-50 chance', 'a fifty-fifty chance'],
  // codes
  ['call 555-0199', 'call five five five, zero one nine nine'],
  ['(555) 123-4567', 'five five five, one two three, four five six seven'],
  ['+44 20 7946 0958', 'plus four four, two zero, seven nine four six, zero nine five eight'],
  ['dial 911', 'dial nine one one'],
  ['192.168.0.1', 'one nine two dot one six eight dot zero dot one'],
  ['v2.1.3', 'version two point one point three'],
  ['Node 20.19.0', 'Node twenty point nineteen point zero'],
  ['MP3, B2B, COVID-19', 'MP three, B two B, COVID-nineteen'],
  ['a 4x4 in 1920x1080', 'a four by four in nineteen twenty by ten eighty'],
  ['2x faster', 'two times faster'],
  ['No. 5 and #1', 'number five and number one'],
  // letters
  ['NASA and the FBI', 'NASA and the FBI'],
  ['an IQ of 120', 'an I Q of one hundred twenty'],
  ['the U.S. team', 'the US team'],
  ['Dr. Smith, e.g. at 5', 'Doctor Smith, for example at five'],
  ['World War II', 'World War two'],
  ['Louis XIV', 'Louis the fourteenth'],
  ['Chapter IV', 'Chapter four'],
  ['the XIX century', 'the nineteenth century'],
  ['Elizabeth I know, I mix', 'Elizabeth I know, I mix'],
]

describe('spoken', () => {
  test.each(table)('%s', (text, words) => {
    expect(spokenNumbers(text)).toBe(words)
  })
  test('is a table of more than 60, leaves no digit and reads its own words as they are', () => {
    expect(table.length).toBeGreaterThan(60)
    for (const [, words] of table) {
      expect(words).not.toMatch(/\p{N}/u)
      expect(spokenNumbers(words)).toBe(words)
    }
  })
  test('leaves no digit of any text, and reads its own words as they are', () => {
    const sign = fc.constantFrom(...' .,:;-–/$€£%°\'"()+×x^²½#kmsthpaGBvI', ...'0123456789')
    fc.assert(
      fc.property(fc.string({ unit: sign, maxLength: 24 }), (text) => {
        const words = spokenNumbers(text)
        expect(words).not.toMatch(/\p{Nd}/u)
        expect(spokenNumbers(words)).toBe(words)
      }),
      { numRuns: 2000, seed: 1 },
    )
  })
  test('a text without digits, signs and abbreviations stays', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'abcdehijklopqrtuwxyz ,;!?…"') }), (text) => {
        expect(spokenNumbers(text)).toBe(text)
      }),
    )
  })
})

test('IPA between slashes stays, whatever the style', () => {
  const text = '5 /tə1m2ˈɑː/ and 50%/a3b/ 6'
  expect(readNumbers(text, 'spoken')).toBe('five /tə1m2ˈɑː/ and fifty percent /a3b/ six')
  expect(readNumbers(text, 'upstream')).toBe('five /tə1m2ˈɑː/ and fifty%/a3b/ six')
  expect(readNumbers(text, 'as written')).toBe(text)
})

test('another style is refused', () => {
  expect(() => readNumbers('5', 'written' as never)).toThrow(/^numbers: "written" is no style, expected spoken/)
})

test('only English is read by default', () => {
  expect(['en-us', 'en-gb-x-rp', 'EN-US', 'de', 'et', 'cmn'].map(numberStyleOf)).toEqual([
    ...Array(3).fill('spoken'),
    ...Array(3).fill('as written'),
  ])
})
