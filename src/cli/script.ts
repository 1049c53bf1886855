/** What one voice says before another does. */
export interface Turn {
  /** Of the voice; the first of the names where the text does not say. */
  readonly name: string | undefined
  readonly text: string
}

/**
 * The turns of a script, a text in which lines begin with the name of who speaks and a colon, "anna: Good morning.".
 * Only the names that are given count, in any case; other lines go on with the turn before. What comes before the first
 * name is the first voice's.
 */
export function turnsOf(script: string, names: readonly string[]): Turn[] {
  const turns: { name: string | undefined; lines: string[] }[] = [{ name: names[0], lines: [] }]
  for (const line of script.split(/\r?\n/)) {
    const [, who, rest] = /^\s*([^:]+?)\s*:\s*(.*)$/u.exec(line) ?? []
    const name = names.find((name) => name.toLowerCase() === who?.toLowerCase())
    if (name === undefined) turns.at(-1)!.lines.push(line)
    else turns.push({ name, lines: [rest!] })
  }
  const all = turns.map(({ name, lines }) => ({ name, text: lines.join('\n').trim() }))
  const said = all.filter(({ text }) => /[\p{L}\p{N}\p{S}]/u.test(text)) // a turn of dots is silence
  return said.length > 0 ? said : all.slice(0, 1)
}
