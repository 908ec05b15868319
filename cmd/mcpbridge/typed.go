package main

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
)

// configExtensions are how the names of configuration files end.
var configExtensions = []string{".yaml", ".yml", ".json", ".jsonc", ".json5", ".toml"}

// looksLikeFile reports whether a word is the name of a configuration file, there or not.
func looksLikeFile(word string) bool {
	return !strings.Contains(word, "://") && slices.Contains(configExtensions, strings.ToLower(filepath.Ext(word)))
}

// configPath is the file that a command reads: the one of -c, or the only argument.
func configPath(command, flag string, args []string) (string, error) {
	switch {
	case flag != "" && len(args) > 0:
		return "", usageError("two files are given, %s and %s; leave one out", flag, args[0])
	case len(args) > 1:
		return "", usageError("want one file, found %d words; put a name with spaces in quotes", len(args))
	case flag == "" && len(args) == 0:
		return "", usageError("which file? Write %[1]s FILE, as in %[1]s config.yaml", command)
	case flag != "":
		return flag, nil
	}
	return args[0], nil
}

// withDashes is the line that was typed with -- before the command in it; false if it
// has no command that lacks it. typed begins with the program's name.
func withDashes(cmd *cobra.Command, typed []string) (string, bool) {
	at := slices.Index(typed, cmd.Name())
	if at < 0 || slices.Contains(typed, "--") {
		return "", false
	}
	for at++; at < len(typed); at++ {
		word := typed[at]
		if !strings.HasPrefix(word, "-") {
			if strings.Contains(word, "://") || looksLikeFile(word) {
				return "", false
			}
			return commandLine(cmd, typed[slices.Index(typed, cmd.Name())+1:at], typed[at:]), true
		}
		value, known := takesValue(cmd.Flags(), word)
		if !known {
			return "", false
		}
		if value {
			at++
		}
	}
	return "", false
}

// dashed is a line of wrap with -- before the server's command, if that lacks it: the flags of
// wrap end at the command. typed begins with the program's name.
func dashed(typed []string, flags *pflag.FlagSet) []string {
	if len(typed) < 2 || typed[1] != "wrap" {
		return typed
	}
	for at := 2; at < len(typed); at++ {
		word := typed[at]
		if !strings.HasPrefix(word, "-") {
			if strings.Contains(word, "://") || looksLikeFile(word) || isOfFile(typed[at+1:]) {
				return typed
			}
			return slices.Insert(slices.Clone(typed), at, "--")
		}
		value, known := takesValue(flags, word)
		name, _, _ := strings.Cut(word, "=")
		if !known || name == "--install" || name == "--uninstall" {
			return typed
		}
		if value {
			at++
		}
	}
	return typed
}

// isOfFile reports whether the words after a name say that it is that of a group or server of a
// file: a command that gets such words is not likely.
func isOfFile(words []string) bool {
	return len(words) == 2 && (words[0] == "-c" || words[0] == "--config") && looksLikeFile(words[1]) && existingFile(words[1])
}

// takesValue reports whether the word after a flag is its value. known says that there is
// such a flag.
func takesValue(fs *pflag.FlagSet, word string) (value, known bool) {
	name, _, has := strings.Cut(strings.TrimLeft(word, "-"), "=")
	f := fs.Lookup(name)
	if !strings.HasPrefix(word, "--") && len(word) > 1 {
		f, has = fs.ShorthandLookup(word[1:2]), len(word) > 2
	}
	return f != nil && f.NoOptDefVal == "" && !has, f != nil
}

// commandLine is how to call a command of mcpbridge with flags, and a server's command.
func commandLine(cmd *cobra.Command, flags, command []string) string {
	words := append(strings.Fields(cmd.CommandPath()), flags...)
	words = append(append(words, "--"), command...)
	for i, w := range words {
		words[i] = output.ShellWord(w)
	}
	return strings.Join(words, " ")
}

// isAddress reports whether a word is HOST:PORT.
func isAddress(word string) bool {
	host, port, err := net.SplitHostPort(word)
	number, _ := strconv.Atoi(port)
	return err == nil && host != "" && number > 0
}

// existingFile reports whether there is a file of that name.
func existingFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// notAServer is the error about a word that is neither a URL nor after --.
func notAServer(cmd *cobra.Command, typed []string, word string) error {
	if looksLikeFile(word) {
		if existingFile(word) {
			return usageError("%s is a file with many servers; write: mcpbridge serve %s", word, output.ShellWord(word))
		}
		return usageError("there is no file %s; give its path, as in mcpbridge serve ~/%s", word, filepath.Base(word))
	}
	if isAddress(word) {
		return usageError("%q is the address of a server, but no URL; write one such as http://%s/mcp", word, word)
	}
	if line, ok := withDashes(cmd, typed); ok {
		return usageError("a command stands after --; write: %s", line)
	}
	return usageError("%q is neither a URL nor a command; write https://HOST/PATH, or -- and the command", word)
}

// flagError says which flag is wrong, or that the words after a command are not ours.
func (p process) flagError(cmd *cobra.Command, err error) error {
	if line, ok := withDashes(cmd, p.args); ok && takesCommand(cmd) {
		return usageError("a command stands after --; write: %s", line)
	}
	return usageError("%v; see %s --help", err, cmd.CommandPath())
}

// takesCommand reports whether a command of mcpbridge can be given a server's command.
func takesCommand(cmd *cobra.Command) bool { return strings.Contains(cmd.Use, "COMMAND") }
