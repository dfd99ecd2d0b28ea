// Package version says which build of the program this is.
package version

import (
	"runtime"
	"runtime/debug"
)

// Info says which program this is.
type Info struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"` // empty when it was not built from a checkout
	Date     string `json:"date"`   // of the commit
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Of reads what the Go tool recorded. The release is what the linker set;
// when it is empty, the version is that of the module.
func Of(release string) Info {
	v := Info{Version: release, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if ok && v.Version == "" {
		v.Version = info.Main.Version
	}
	if v.Version == "" {
		v.Version = "(devel)"
	}
	if !ok {
		return v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.time":
			v.Date = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
