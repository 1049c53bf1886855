// The build writes one import for every test file here.
export {}
