package kvtest

func lockCases() []testCase { return nil }
