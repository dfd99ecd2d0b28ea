//go:build !unix

package simulate

import "time"

// cpuTime returns 0: it is not known.
func cpuTime() time.Duration { return 0 }
