package simulate

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"sync"
	"time"
)

// journal has a line for everything that happens in a world: each step, each change of a kvstore, each finding. Two runs
// with the same journal are the same run.
type journal struct {
	mu    sync.Mutex
	start time.Time
	sum   hash.Hash
	lines int
	file  *os.File // nil: only the sum is kept
	text  *bufio.Writer
}

// newJournal begins a journal, which is written to a file unless the path is empty.
func newJournal(path string) (*journal, error) {
	j := &journal{start: time.Now(), sum: sha256.New()}
	if path == "" {
		return j, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	j.file, j.text = f, bufio.NewWriter(f)
	return j, nil
}

// note adds a line.
func (j *journal) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	line := fmt.Sprintf("%s %s\n", time.Since(j.start), fmt.Sprintf(format, args...))
	j.sum.Write([]byte(line))
	j.lines++
	if j.text != nil {
		_, _ = j.text.WriteString(line) // Flush returns the error
	}
}

// end returns the number of lines and their sum.
func (j *journal) end() (string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	sum := fmt.Sprintf("%d lines, SHA-256 %s", j.lines, hex.EncodeToString(j.sum.Sum(nil)))
	if j.file == nil {
		return sum, nil
	}
	if err := j.text.Flush(); err != nil {
		return sum, err
	}
	return sum, j.file.Close()
}
