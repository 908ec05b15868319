//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strings"
)

// What a legacy client says before it only listens.
const (
	legacyInitialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`
	legacyReady      = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	legacySubscribe  = `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"` + topicURI + `"}}`
)

// A session opens the stream of one legacy client, which has subscribed to one
// resource.
type session func(addr string) (net.Conn, error)

var sessions = map[string]session{"get": openGet, "events": openEvents}

// openSession opens the session of a client of 2025-11-25, and returns its id.
func openSession(url string) (id string, err error) {
	header := http.Header{}
	for _, text := range []string{legacyInitialize, legacyReady} {
		answer, err := say(url, header, text)
		if err != nil {
			return "", err
		}
		if id := answer.Get("Mcp-Session-Id"); id != "" {
			header.Set("Mcp-Session-Id", id)
		}
	}
	return header.Get("Mcp-Session-Id"), nil
}

// openGet opens a session over Streamable HTTP, and its GET stream.
func openGet(addr string) (net.Conn, error) {
	url := "http://" + addr + "/mcp/topics"
	id, err := openSession(url)
	if err != nil {
		return nil, err
	}
	if _, err = say(url, http.Header{"Mcp-Session-Id": {id}}, legacySubscribe); err != nil {
		return nil, err
	}
	s, err := get(addr, "/mcp/topics", "Mcp-Session-Id: "+id)
	if err != nil {
		return nil, err
	}
	_, err = s.until(":\n")
	return s.Conn, err
}

// openEvents opens a session of HTTP+SSE.
func openEvents(addr string) (net.Conn, error) {
	s, err := get(addr, "/sse/topics")
	if err != nil {
		return nil, err
	}
	endpoint, err := s.until("data: ")
	url := "http://" + addr + strings.TrimSpace(strings.TrimPrefix(endpoint, "data: "))
	for _, text := range []string{legacyInitialize, legacyReady, legacySubscribe} {
		if err == nil {
			_, err = say(url, http.Header{}, text)
		}
		if err == nil && text != legacyReady {
			_, err = s.until("data: ")
		}
	}
	return s.Conn, err
}

// say posts one message.
func say(url string, header http.Header, text string) (http.Header, error) {
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	r.Header = header.Clone()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	var body bytes.Buffer
	if _, err := body.ReadFrom(res.Body); err != nil {
		return nil, err
	}
	if res.StatusCode/100 != 2 || bytes.Contains(body.Bytes(), []byte(`"error"`)) {
		return nil, fmt.Errorf("%s: %s: %s", text, res.Status, body.Bytes())
	}
	return res.Header, nil
}

// A lineStream is a stream while it is read line by line.
type lineStream struct {
	net.Conn
	lines *bufio.Reader
}

// get asks for a stream.
func get(addr, path string, headers ...string) (*lineStream, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	head := append([]string{"GET " + path + " HTTP/1.1", "Host: " + addr, "Accept: text/event-stream"}, headers...)
	_, err = conn.Write([]byte(strings.Join(head, "\r\n") + "\r\n\r\n"))
	return &lineStream{conn, bufio.NewReader(conn)}, err
}

// until reads to the line with a prefix, and returns it.
func (s *lineStream) until(prefix string) (string, error) {
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil || strings.HasPrefix(line, prefix) {
			return line, err
		}
	}
}
