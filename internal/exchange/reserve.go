package exchange

// A Reserve takes n bytes of memory for a share until release is called, once. It
// does not wait: the error, for the client, says that there are none to be had. It is
// for what somebody else decides to have kept, in size and in number.
type Reserve func(s Share, n int) (release func(), err error)

// Unbounded is a Reserve that takes from nowhere.
func Unbounded(Share, int) (release func(), err error) { return func() {}, nil }
