// Package terminaltest has terminals for tests of a program's output on a terminal.
package terminaltest

import (
	"io"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// Open returns a terminal of this size for programs, its keyboard, and the output that they have written so far, in
// which each line ends in \r\n. Programs read the bytes written to keyboard as typed input. The test is skipped if
// the system has no pseudoterminals.
func Open(t *testing.T, width, height uint16) (terminal *os.File, keyboard io.Writer, written *waittest.Output) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudoterminal: %v", err)
	}
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: height, Col: width}); err != nil {
		t.Fatal(err)
	}
	if terminal, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	written = new(waittest.Output)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(written, master) // it ends with an error when no program has the terminal open
	}()
	t.Cleanup(func() {
		_ = terminal.Close()
		<-ended
		_ = master.Close()
	})
	return terminal, master, written
}
