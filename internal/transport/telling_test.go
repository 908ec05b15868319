package transport

import (
	"slices"
	"strings"
	"testing"
)

// The error about an end quotes what npm, node and python print of its cause, wherever that is.
func TestTellingLines(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"few", "one\ntwo", "one\ntwo"},
		{"npm", `npm error code E404
npm error 404 Not Found - GET https://registry.npmjs.org/nosuch
npm error 404
npm error 404  The requested resource 'nosuch@*' could not be found or you do not have permission to access it.
npm error 404
npm error 404 Note that you can also install from a
npm error 404 tarball, folder, http url, or git url.
npm error A complete log of this run can be found in: /home/ada/.npm/_logs/debug-0.log`,
			`npm error code E404
npm error 404 Not Found - GET https://registry.npmjs.org/nosuch
npm error 404
…
npm error 404 tarball, folder, http url, or git url.
npm error A complete log of this run can be found in: /home/ada/.npm/_logs/debug-0.log`},
		{"node", `node:internal/modules/cjs/loader:1210
  throw err;
  ^
Error: Cannot find module '/nope.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)
    at Function.executeUserEntryPoint [as runMain] (node:internal/modules/run_main:164:12) {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}
Node.js v20.20.2`,
			`node:internal/modules/cjs/loader:1210
…
Error: Cannot find module '/nope.js'
…
}
Node.js v20.20.2`},
		{"python", `Traceback (most recent call last):
  File "/srv/server.py", line 3, in <module>
    main()
  File "/srv/server.py", line 2, in main
    import nosuch
ModuleNotFoundError: No module named 'nosuch'`,
			`  File "/srv/server.py", line 3, in <module>
    main()
  File "/srv/server.py", line 2, in main
    import nosuch
ModuleNotFoundError: No module named 'nosuch'`},
		{"nothing of an error", "1\n2\n3\n4\n5\n6\n7", "3\n4\n5\n6\n7"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Join(tellingLines(strings.Split(tt.text, "\n"), true), "\n")
			if got != tt.want {
				t.Errorf("chosen are\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
	if got := tellingLines([]string{"a", "an error", "b", "c", "d", "e"}, false); !slices.Equal(got, []string{"an error", gap, "d", "e"}) {
		t.Errorf("after other lines it is %q", got)
	}
}
