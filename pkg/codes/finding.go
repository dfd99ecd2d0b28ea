package codes

// Finding is one thing that was found somewhere.
type Finding struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"` // that of the code
	Message  string   `json:"message"`  // what is so here
	Remedy   string   `json:"remedy"`   // what to do about it
}

// Found returns a finding. Without a remedy of its own it has that of the registry.
func (c Code) Found(message, remedy string) Finding {
	e, known := Find(string(c))
	if !known {
		e.Severity = Info
	}
	if remedy == "" {
		remedy = e.Remedy
	}
	return Finding{Code: c, Severity: e.Severity, Message: message, Remedy: remedy}
}

// String is the finding on one line, with its code at the end.
func (f Finding) String() string { return f.Message + " [" + string(f.Code) + "]" }
