package argv

import "strings"

// withValue are the flags, of programs that run packages and scripts, whose value is
// the next argument; ofContainers are those of docker run. An unknown flag is taken for
// one without a value: names are a convenience, and --name says otherwise.
var (
	withValue = setOf(`
		-p --package -c --call --from --with --with-editable --python --directory --project --index --index-url --extra-index-url
		--spec --cache --registry --prefix --env-file --config --import-map -r --require --import --loader --experimental-loader --tsconfig
		-cp -classpath --class-path -W -X`)
	ofContainers = setOf(`
		-e --env --env-file -v --volume --mount --network --net --name --entrypoint -w --workdir -u --user --platform -h --hostname --add-host
		-l --label -m --memory --cpus --cpu-shares --gpus --pull --runtime --ipc --pid --cap-add --cap-drop --device --dns --expose --link
		--log-driver -p --publish --restart --security-opt --shm-size --tmpfs --ulimit --volumes-from --cidfile`)
)

func setOf(words string) map[string]bool {
	set := make(map[string]bool)
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// operands returns where in args the words stand that are neither flags nor their
// values.
func operands(args []string, withValue map[string]bool) []int {
	var at []int
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--":
			for i++; i < len(args); i++ {
				at = append(at, i)
			}
		case withValue[args[i]] && i+1 < len(args):
			i++
		case strings.HasPrefix(args[i], "-"):
		default:
			at = append(at, i)
		}
	}
	return at
}
