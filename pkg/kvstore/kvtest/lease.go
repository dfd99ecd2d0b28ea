package kvtest

func leaseCases() []testCase { return nil }
