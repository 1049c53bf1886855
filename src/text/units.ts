export interface Unit {
  readonly one: string
  readonly more: string
  /** Below the stroke: 'second squared'. */
  readonly inside: string
  /** Counts only with a space before it, since "5m", "5s" and "5g" are other things too. */
  readonly apart: boolean
}

/** Symbols, name, and the plural where it is not with s. Letters that are words or other things are not here: in, A, K. */
const table = `
  mm millimeter; cm centimeter; dm decimeter; m meter; km kilometer; nm nanometer; µm,μm micrometer; mi mile; yd yard
  ft foot feet; ha hectare; mg milligram; µg,μg microgram; g gram; kg kilogram; lb,lbs pound; oz ounce
  ml,mL milliliter; cl,cL centiliter; dl,dL deciliter; l,L liter; gal gallon; s,sec second; ms millisecond
  µs,μs microsecond; ns nanosecond; min,mins minute; h,hr,hrs hour; Hz hertz hertz; kHz kilohertz kilohertz
  MHz megahertz megahertz; GHz gigahertz gigahertz; kB,KB kilobyte; MB megabyte; GB gigabyte; TB terabyte; PB petabyte
  KiB kibibyte; MiB mebibyte; GiB gibibyte; TiB tebibyte; kbps kilobit_per_second kilobits_per_second
  Mbps megabit_per_second megabits_per_second; Gbps gigabit_per_second gigabits_per_second; mW milliwatt; W watt
  kW kilowatt; MW megawatt; GW gigawatt; Wh watt-hour; kWh kilowatt-hour; mAh milliamp_hour; mA milliamp; V volt
  kV kilovolt; J joule; kJ kilojoule; kcal kilocalorie; cal calorie; Pa pascal; hPa hectopascal; kPa kilopascal; bar bar
  psi P_S_I P_S_I; dB decibel; px pixel; dpi dots_per_inch dots_per_inch; fps frame_per_second frames_per_second
  mph mile_per_hour miles_per_hour; kph,kmh kilometer_per_hour kilometers_per_hour
  rpm revolution_per_minute revolutions_per_minute; bpm beat_per_minute beats_per_minute
  ppm part_per_million parts_per_million; Ω ohm; kΩ kilohm; lm lumen`

const lengths = new Set(['mm', 'cm', 'dm', 'm', 'km', 'mi', 'yd', 'ft'])
const apart = new Set(['s', 'l', 'V', 'J'])

const units = new Map<string, Unit>()
for (const entry of table.split(/;|\n/)) {
  const [symbols, one, more = `${one}s`] = entry.trim().replace(/\s+/g, ' ').split(' ')
  if (one === undefined) continue
  const words = (name: string): string => name.replaceAll('_', ' ')
  for (const symbol of symbols!.split(',')) {
    const unit = { one: words(one), more: words(more), inside: words(one), apart: apart.has(symbol) }
    units.set(symbol, unit)
    for (const [signs, name, inside] of [
      ['²2', 'square', 'squared'],
      ['³3', 'cubic', 'cubed'],
    ] as const)
      for (const sign of signs) {
        const power = lengths.has(symbol) || (symbol === 's' && name === 'square')
        const area = { one: `${name} ${unit.one}`, more: `${name} ${unit.more}`, apart: false }
        const below = lengths.has(symbol) ? area.one : `${unit.one} ${inside}`
        if (power) units.set(symbol + sign, { ...area, inside: below })
      }
  }
}

/** Any of the symbols, the longest first. */
export const unitPattern = `(?:${[...units.keys()].sort((a, b) => b.length - a.length).join('|')})`

export const unitNamed = (symbol: string): Unit | undefined => units.get(symbol)
