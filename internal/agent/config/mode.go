package config

// Mode is what the program does.
type Mode string

// The modes; each is a command.
const (
	ModeRun     Mode = "run"
	ModeOperate Mode = "operate"
	ModeMirror  Mode = "mirror"
)
