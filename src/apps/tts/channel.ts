/** Wakes all who wait for it. */
export interface Bell {
  ring(): void
  /** Resolves when it is rung next. */
  rung(): Promise<void>
}

export function bell(): Bell {
  let wake = (): void => {}
  let next: Promise<void> | undefined
  return {
    ring() {
      next = undefined
      wake()
    },
    rung() {
      next ??= new Promise((resolve) => {
        wake = resolve
      })
      return next
    },
  }
}

/** From one who makes things to one who takes them, in order. What lies in it has no bound: `push` never waits. */
export interface Channel<A> extends AsyncIterable<A> {
  push(item: A): void
  /** Nothing more comes. With an error, who takes gets that behind what was pushed. Only the first call counts. */
  close(error?: { readonly cause: unknown }): void
}

export function channel<A>(): Channel<A> {
  const items: A[] = []
  const news = bell()
  let closed: { readonly cause?: unknown } | undefined
  return {
    push(item) {
      items.push(item)
      news.ring()
    },
    close(error) {
      closed ??= error ?? {}
      news.ring()
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        while (items.length > 0) yield items.shift()!
        if (closed && 'cause' in closed) throw closed.cause
        if (closed) return
        await news.rung()
      }
    },
  }
}
