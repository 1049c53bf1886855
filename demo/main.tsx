import { render } from 'preact'
import { App } from './app.tsx'
import { startOffline } from './offline.ts'
import { choice, openDevice } from './state.ts'
import './style/base.css'
import './style/parts.css'

render(<App />, document.getElementById('app')!)
openDevice(choice.value)
startOffline()
