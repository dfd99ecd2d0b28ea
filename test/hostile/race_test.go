//go:build race

package hostile

// raced tells whether the race detector is on, which makes everything slow.
const raced = true
