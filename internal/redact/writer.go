package redact

import "io"

// Writer returns a writer to w that hides secrets. Each Write is taken for itself, so
// that whole texts or lines have to be written.
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
