package key

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

type hint struct {
	Scope string `koanf:"scope"`
}

func TestDerive(t *testing.T) {
	root := derive(reflect.TypeFor[struct {
		Name  string          `koanf:"name" also:"title" enum:"a b" default:"b" doc:"what it is"`
		Count int64           `koanf:"count" min:"2" max:"9" default:"3" command:"4"`
		Wait  *time.Duration  `koanf:"wait" max:"1h"`
		All   map[string]hint `koanf:"all" names:"x y"`
		None  string          `koanf:"-"`
		other string
	}](), "")
	if got, want := root.Spelled(), []string{"all", "count", "name", "title", "wait"}; !reflect.DeepEqual(got, want) {
		t.Errorf("keys are %q, want %q", got, want)
	}
	if k := root.ByName["title"]; k.Name != "name" || k.Kind != Text || k.Default != "b" || k.Secret || k.Doc != "what it is" {
		t.Errorf("title is %+v", k)
	}
	if k := root.ByName["count"]; k.Kind != Count || k.Default != int64(3) || k.OfCommand != int64(4) || k.Min != 2 || k.Max != 9 {
		t.Errorf("count is %+v", k)
	}
	if k := root.ByName["wait"]; k.Kind != Span || k.Default != nil || k.Min != 0 || k.Max != int64(time.Hour) {
		t.Errorf("wait is %+v", k)
	}
	if k := root.ByName["all"]; k.Kind != Table || !slices.Equal(k.Names, []string{"x", "y"}) || k.Each.ByName["scope"] == nil {
		t.Errorf("all is %+v", k)
	}
}

// A tag that says what can't be is found when the program starts, and so by any test.
func TestDerivePanics(t *testing.T) {
	for _, typ := range []reflect.Type{
		reflect.TypeFor[struct {
			A int64 `koanf:"a" default:"x"`
		}](),
		reflect.TypeFor[struct {
			A string `koanf:"a" enum:"b c" default:"d"`
		}](),
		reflect.TypeFor[struct {
			A time.Duration `koanf:"a" min:"2s" default:"1s"`
		}](),
		reflect.TypeFor[struct {
			A int64 `koanf:"a" min:"2" max:"1"`
		}](),
		reflect.TypeFor[struct {
			A float32 `koanf:"a"`
		}](),
	} {
		func() {
			defer func() {
				if why, ok := recover().(string); !ok || !strings.HasPrefix(why, "config: ") {
					t.Errorf("derive(%v) panics with %q, want a mistake in a tag", typ, why)
				}
			}()
			derive(typ, "")
		}()
	}
}
