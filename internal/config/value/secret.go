package value

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
)

// SecretsInEnviron returns the secrets of the process's environment: the values of variables
// with names of credentials, and the user information of proxies.
func SecretsInEnviron(environ []string) []string {
	var out []string
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		switch name = strings.ToUpper(name); {
		case IsSecretVariable(name):
			out = append(append(out, value), SecretsInURL(value)...)
		case strings.HasSuffix(name, "_PROXY") && name != "NO_PROXY":
			out = append(out, SecretsInURL(value)...)
		}
	}
	return out
}

// IsSecretVariable reports whether an environment variable holds a secret by its name.
func IsSecretVariable(name string) bool { return credentialVariable.MatchString(strings.ToUpper(name)) }

var credentialVariable = regexp.MustCompile(`TOKEN|KEY|SECRET|PASSWORD`)

// SecretsInHeader returns the secrets in the value of a header: all of it except the name of
// the scheme.
//
// Spec: RFC 9110, 11.4.
func SecretsInHeader(value string) []string {
	scheme, rest, ok := strings.Cut(value, " ")
	if !ok || !schemeName.MatchString(scheme) {
		return append(assigned(value), value)
	}
	rest = strings.TrimSpace(rest)
	out := append(assigned(rest), rest)
	if !strings.EqualFold(scheme, "Basic") {
		return out
	}
	if pair, err := base64.StdEncoding.DecodeString(rest); err == nil {
		_, password, _ := strings.Cut(string(pair), ":")
		out = append(out, string(pair), password)
	}
	return out
}

var schemeName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*$`)

// assigned returns the values of name=value pairs, as in cookies.
func assigned(text string) []string {
	var out []string
	for pair := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == ',' || r == ' ' }) {
		if _, value, ok := strings.Cut(pair, "="); ok {
			out = append(out, strings.Trim(value, `"`))
		}
	}
	return out
}

// SecretsInURL returns the user information and the query's values if text is a URL.
func SecretsInURL(text string) []string {
	if !strings.Contains(text, "://") {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil
	}
	var out []string
	if u.User != nil {
		password, _ := u.User.Password()
		out = append(out, u.User.Username(), password, u.User.Username()+":"+password)
	}
	for name, values := range u.Query() {
		if out = append(out, values...); len(values) == 1 && values[0] == "" {
			out = append(out, name)
		}
	}
	return out
}

// IsCommonVariable reports whether a variable has the name of a user or of a directory.
func IsCommonVariable(variable string) bool {
	return slices.Contains(commonVariables, strings.ToUpper(variable))
}

// commonVariables are variables with names of users and directories. Their values are in
// every path, and are not secrets.
var commonVariables = []string{
	"HOME", "HOSTNAME", "LOGNAME", "PATH", "PWD", "SHELL", "TEMP", "TERM", "TMP", "TMPDIR", "USER", "USERNAME",
	"USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES",
}

// IsSecretName reports whether a name sounds like that of a credential.
func IsSecretName(name string) bool {
	lower := strings.ToLower(name)
	return slices.ContainsFunc(credentialWords, func(word string) bool { return strings.Contains(lower, word) })
}

var credentialWords = []string{"key", "token", "secret", "passw", "credential", "auth", "bearer", "cookie"}

// URLCarriesSecret reports whether a URL has user information, or a query that sounds
// like a credential.
func URLCarriesSecret(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	return u.User != nil || credentialQuery.MatchString(u.RawQuery)
}

var credentialQuery = regexp.MustCompile(`(?i)(key|token|secret|passw|auth)[^&=]*=`)

// CheckSecrets checks secrets that keys are made of. Its errors never contain one.
func CheckSecrets(rep *key.Report, path string, keys []string) {
	for i, k := range keys {
		if len(k) < minKey {
			rep.Fail(key.Join(path, strconv.Itoa(i)), "is shorter than %d characters; write a random secret, as openssl rand -base64 32 prints one", minKey)
		}
	}
}

// minKey is the least length of a secret that keys are made of, in bytes.
const minKey = 16
