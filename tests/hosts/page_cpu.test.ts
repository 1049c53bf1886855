import { flows } from './page_flows.ts'

// In a browser without an adapter, so all of it runs on the CPU.
flows('cpu')
