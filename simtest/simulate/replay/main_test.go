//go:build linux && amd64

package main

import (
	"errors"
	"os"
	"runtime"
	"testing"

	_ "github.com/mesh-agent/mesh-agent/simtest/simulate" // the go command keeps the result while it is the same
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestAScheduleGivesOneJournal: a schedule gives the same journal each time, with faults.
func TestAScheduleGivesOneJournal(t *testing.T) {
	waittest.Long(t)
	allowed := make(chan error)
	go func() {
		runtime.LockOSThread() // and not unlocked: the thread ends with the goroutine
		allowed <- goFirst()
	}()
	if err := <-allowed; err != nil {
		t.Skipf("beside other programs, a run can differ now and then, unless it can go first: %v", err)
	}
	t.Chdir("../../..")
	_, err := os.ReadDir("simtest/simulate")
	waittest.Must(t, err)
	o := options{seed: 7, seeds: 1, schedule: 1, schedules: 1, times: 3, hours: 0.05, mesh: "3x3x4x10/2s"}
	if err := o.run(t.Context()); errors.Is(err, os.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		t.Skipf("processes may not be traced here: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
}
