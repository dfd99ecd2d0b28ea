package kvstore

import "time"

// Probe is one linearizable read of the watchdog. When it succeeded, everything
// that was written before At is at or before Head: a copy that has reached Head
// equals the server's contents as of At.
type Probe struct {
	// At was taken before the read began.
	At time.Time
	// Head is the position that the read saw; zero when it failed.
	Head Position
	// Err is why it failed, nil when it succeeded.
	Err error
}
