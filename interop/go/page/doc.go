// Package page answers one question: does the admin page show what mcpbridge does, to a
// person with a browser?
//
// It runs servers and clients of both eras, looks at every view in Debian's Chromium, and
// keeps pictures of them in interop/bin/page. axe-core judges them, in light and dark, on a
// screen and on a phone. Texts of clients and servers that are HTML have to stay texts. With
// PAGE_STREAMS it also measures what it costs that somebody looks.
package page
