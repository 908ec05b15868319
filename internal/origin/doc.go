// Package origin keeps requests off that web pages of other origins send, and lets the pages
// that are allowed read the responses (CORS).
package origin
