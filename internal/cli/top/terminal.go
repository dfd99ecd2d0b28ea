package top

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// withKeys calls use with the keys that are pressed on a terminal, each at once and without its echo. Ctrl-C still
// interrupts. When use returns, also by a panic, the terminal has its previous state. The keys are nil if in is no
// terminal, or if this command is not in its foreground.
func withKeys(ctx context.Context, in any, use func(keys <-chan byte) error) error {
	f, isFile := in.(*os.File)
	if !isFile {
		return use(nil)
	}
	fd := int(f.Fd())
	before, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil || !inForeground(fd) {
		return use(nil)
	}
	single := *before
	single.Lflag &^= unix.ICANON | unix.ECHO
	single.Cc[unix.VMIN], single.Cc[unix.VTIME] = 0, 1 // a read waits for a tenth of a second, so that it can end
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &single); err != nil {
		return use(nil)
	}
	ctx, cancel := context.WithCancel(ctx)
	keys := make(chan byte)
	go readKeys(ctx, fd, keys)
	defer func() {
		cancel()
		for range keys { // until the reader has ended
		}
		_ = unix.IoctlSetTermios(fd, unix.TCSETS, before)
	}()
	return use(keys)
}

// inForeground reports whether this program may change the terminal: the system stops one in the background that does.
// A terminal that does not control the program stops none.
func inForeground(fd int) bool {
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

// readKeys sends the typed bytes until ctx ends or the terminal is gone, and closes keys.
func readKeys(ctx context.Context, fd int, keys chan<- byte) {
	defer close(keys)
	some := make([]byte, 64)
	for ctx.Err() == nil {
		n, err := unix.Read(fd, some)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN), err == nil && n == 0:
			select { // a terminal that was hung up does not wait
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
			continue
		case err != nil:
			return
		}
		for _, key := range some[:n] {
			select {
			case keys <- key:
			case <-ctx.Done():
				return
			}
		}
	}
}
