package buildtest

import (
	"debug/elf"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// most is the maximum size of the program, with everything in it.
const most = 40 << 20 // bytes

// TestTheSizeOfTheProgram: a text/template or html/template that is executed makes the program large, since the linker
// then keeps each exported method. 'go build -ldflags=-dumpdep' shows what refers to it.
func TestTheSizeOfTheProgram(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	path := Agent(t)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.2f MiB", float64(info.Size())/(1<<20))
	if info.Size() > most {
		t.Errorf("the program has %d bytes, which is %d above %d MiB", info.Size(), info.Size()-most, most>>20)
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Symbols(); !errors.Is(err, elf.ErrNoSymbols) {
		t.Errorf("it is not stripped: %v", err)
	}
	table := f.Section(".gopclntab") // it contains the names of the functions
	if table == nil {
		t.Fatal("there is no table of functions")
	}
	names, err := table.Data()
	if err != nil {
		t.Fatal(err)
	}
	if name := "text/template.(*state).evalField"; strings.Contains(string(names), "\x00"+name+"\x00") {
		t.Errorf("%s is linked", name)
	}
	if name := "main.main"; !strings.Contains(string(names), "\x00"+name+"\x00") {
		t.Errorf("%s is not found, so nothing can be", name)
	}
}
