package redact

import "io"

// Writer returns a writer to w that hides secrets. It does not find a secret that is
// split between two Writes, so write whole texts or lines.
func (r *Redactor) Writer(w io.Writer) io.Writer { return &writer{r, w} }

type writer struct {
	r *Redactor
	w io.Writer
}

// Write implements [io.Writer].
func (w *writer) Write(p []byte) (int, error) {
	if _, err := w.w.Write(w.r.Bytes(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
