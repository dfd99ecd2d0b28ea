package etcdserver

import (
	"os"
	"sync"
	"syscall"

	"go.etcd.io/etcd/server/v3/storage/wal"
)

const (
	// memory is the file system in memory of Linux.
	memory = "/dev/shm"
	// room is how much of it has to be free to be used: many servers run at once.
	room = 4 << 30
	// segment is the size of the files of the log, which etcd allocates before it writes them: two for each server.
	segment = 4 << 20
)

// TempDir makes a new directory for the data of a server, which the caller removes. It is in memory where there is
// room: a disk that a compiler keeps busy makes requests wait for seconds, and fail.
func TempDir() (string, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(memory, &fs); err == nil && fs.Bavail*uint64(fs.Bsize) >= room { //nolint:gosec // a block is not negative
		if dir, err := os.MkdirTemp(memory, "etcd-"); err == nil {
			return dir, nil
		}
	}
	return os.MkdirTemp("", "etcd-")
}

// shorten makes the files of the log of all servers small. It is a variable of etcd that only the first call sets.
var shorten = sync.OnceFunc(func() { wal.SegmentSizeBytes = segment })
