package value

import (
	"math"
	"strings"
	"unicode"
)

// guessableBelow is how many bits of a secret have to be unknown to whoever tries secrets at a
// copy of what was signed with it: 16 characters of base64 have more, 16 of hexadecimal less.
const guessableBelow = 80

// Guessable says why others may find a secret by trying, in words that follow "it"; empty if
// they hardly can. It estimates how much of the secret common words, repetitions and runs of
// characters leave open. It can't tell a random secret from one that another machine
// knows.
func Guessable(secret string) string {
	text := strings.ToLower(secret)
	each := alphabet(secret)
	var open, words, repeated, runs float64
	for at := 0; at < len(text); {
		n, costs := 1, each
		switch before, word := repetition(text, at), wordAt(text, at); {
		case before >= minRepeated && before > word:
			n, costs = before, repetitionBits
			repeated += float64(n)*each - costs
		case word > 0:
			n, costs = word, wordBits
			words += float64(n)*each - costs
		case at > 0 && (follows(text[at-1], text[at]) || separates(text, at)):
			costs = followBits
			runs += each - costs
		}
		open, at = open+costs, at+n
	}
	switch most := max(words, repeated, runs); {
	case open >= guessableBelow:
		return ""
	case float64(len(text))*each < guessableBelow || most == 0:
		return "is short for the characters that it has"
	case words == most:
		return "is made of common words"
	case repeated == most:
		return "repeats itself"
	}
	return "is made of characters that follow each other"
}

// How many bits are open in a common word, a repetition, and a character that follows the one
// before it.
const wordBits, repetitionBits, followBits = 8, 6, 1

// minRepeated is how long a part is that counts as repeated, in bytes.
const minRepeated = 3

// alphabet returns how many bits a random character has, of the kinds that occur.
func alphabet(secret string) float64 {
	hex := strings.IndexFunc(secret, func(c rune) bool {
		return !unicode.IsDigit(c) && (c < 'a' || c > 'f') && (c < 'A' || c > 'F')
	}) < 0
	size := 0
	for _, kind := range []struct {
		size int
		of   func(rune) bool
	}{
		{10, unicode.IsDigit}, {26, unicode.IsLower}, {26, unicode.IsUpper},
		{10, func(c rune) bool { return !unicode.IsDigit(c) && !unicode.IsLetter(c) }},
	} {
		if strings.ContainsFunc(secret, kind.of) {
			size += kind.size
		}
	}
	if hex {
		size = min(size, 16)
	}
	return math.Log2(float64(max(size, 2)))
}

// repetition returns how many bytes from a place on stand before it, too.
func repetition(text string, at int) (longest int) {
	for from := range at {
		n := 0
		for at+n < len(text) && text[from+n] == text[at+n] {
			n++
		}
		longest = max(longest, n)
	}
	return longest
}

// rows are those of keyboards.
var rows = []string{"qwertyuiop", "qwertzuiop", "azertyuiop", "asdfghjkl", "zxcvbnm", "yxcvbnm"}

// follows reports whether people type b after a without thinking.
func follows(a, b byte) bool {
	if d := int(b) - int(a); d >= -1 && d <= 1 {
		return true
	}
	for _, row := range rows {
		if strings.Contains(row, string([]byte{a, b})) {
			return true
		}
	}
	return a == '9' && b == '0' || a == '9' && b == 'a'
}

// separates reports whether a character is a mark that was used before, as between words.
func separates(text string, at int) bool {
	c := rune(text[at])
	return !unicode.IsLetter(c) && !unicode.IsDigit(c) && strings.ContainsRune(text[:at], c)
}

// plain replaces what people write for letters.
var plain = strings.NewReplacer("0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t", "@", "a", "$", "s")

// wordAt returns the length of the longest common word at a place.
func wordAt(text string, at int) (longest int) {
	rest := text[at:]
	letters := plain.Replace(rest) // each is one byte for another
	for _, w := range commonWords {
		if len(w) > longest && (strings.HasPrefix(rest, w) || strings.HasPrefix(letters, w)) {
			longest = len(w)
		}
	}
	return longest
}

// commonWords are words of secrets that people think of, of examples, and of what they are for.
var commonWords = strings.Fields(`
	abcd admin administrator all another apple azerty bar battery baz bridge cat change changeit changeme character characters cluster
	company correct demo dev development dog docker dragon dummy engine enter example fake flower foo for football four from gateway
	god good have hello here horse iloveyou insert internal just kubernetes least letmein local localhost login long love
	master mcp mcpbridge monkey more must my name nats need never nobody not one only or our pass passphrase passwd password peer peers people phrase
	placeholder please princess private prod production put qwerty qwertz random real redis replace replica replicas root safe same sample
	secret secrets secure server shadow shared should sixteen some staging staple state string strong summer sunshine super sure
	temp temporary test testing than that the them there this thousand three todo token top two use user very
	want welcome winter with word words world xxx yes you your key keys and
`)
