package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestF07StrictJSON(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		ok       bool
	}{
		{"object", `{"a":[1,-2.5e+3,true,false,null,"x"]}`, true},
		{"space around", " \t\r\n{} \n", true},
		{"escapes", `"\"\\\/\b\f\n\r\tA\ud83d\ude00"`, true},
		{"non-ASCII", `"héllo 世界 🎉"`, true},
		{"big number kept", `123456789012345678901234567890.5`, true},
		{"empty", ``, false},
		{"space only", `  `, false},
		{"trailing value", `{} {}`, false},
		{"trailing comma", `{"a":1,}`, false},
		{"trailing comma in array", `[1,]`, false},
		{"missing colon", `{"a" 1}`, false},
		{"bare word", `nul`, false},
		{"leading zero", `01`, false},
		{"plus sign", `+1`, false},
		{"dangling exponent", `1e`, false},
		{"dangling point", `1.`, false},
		{"single quotes", `{'a':1}`, false},
		{"comment", `{} // x`, false},
		{"invalid UTF-8", "\"\xff\"", false},
		{"overlong UTF-8", "\"\xc0\x80\"", false},
		{"UTF-8 surrogate", "\"\xed\xa0\x80\"", false},
		{"control character", "\"a\nb\"", false},
		{"control character far in", `"` + strings.Repeat("a", 21) + "\x1f" + `"`, false},
		{"unknown escape", `"\x"`, false},
		{"short unicode escape", `"\u12g4"`, false},
		{"open string", `"abc`, false},
		{"open object", `{"a":1`, false},
		{"open array", `[1`, false},
		{"at the depth limit", strings.Repeat("[", 128) + strings.Repeat("]", 128), true},
		{"over the depth limit", strings.Repeat("[", 129) + strings.Repeat("]", 129), false},
		{"byte order mark", "\ufeff{}", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := Check([]byte(tt.in), 0)
			if (err == nil) != tt.ok {
				t.Fatalf("Check(%q) = %v, want ok = %v", tt.in, err, tt.ok)
			}
			var se *SyntaxError
			if err != nil && !errors.As(err, &se) {
				t.Errorf("Check(%q) = %T, want *SyntaxError", tt.in, err)
			}
		})
	}
}

// Params that are null are missing ones, if that is asked for.
func TestQ07ParseNullParams(t *testing.T) {
	const text = `{"jsonrpc":"2.0","id":7,"method":"a","params":null}`
	m, err := Parse([]byte(text), Options{UniqueParams: true, NullParams: true})
	if err != nil || m.Params != nil || m.Meta != nil || !m.NullParams || m.Kind() != Request {
		t.Errorf("Parse(%s) = %+v, %v, want a request without params", text, m, err)
	}
	for _, text := range []string{`{"jsonrpc":"2.0","id":7,"method":"a","params":[null]}`, `{"jsonrpc":"2.0","id":7,"method":"a","params":{},"params":null}`} {
		if m, err := Parse([]byte(text), Options{UniqueParams: true, NullParams: true}); err == nil || m.NullParams {
			t.Errorf("Parse(%s) = %+v, want an error", text, m)
		}
	}
}

func TestF07ParseRefuses(t *testing.T) {
	for _, tt := range []struct{ name, in, id, want string }{
		{"no version", `{"id":1,"method":"a"}`, "1", `jsonrpc is not "2.0"`},
		{"version a number", `{"jsonrpc":2.0,"id":1,"method":"a"}`, "1", `jsonrpc is not "2.0"`},
		{"wrong case", `{"JSONRPC":"2.0","id":1,"method":"a"}`, "1", `jsonrpc is not "2.0"`},
		{"duplicate id", `{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}`, "null", `duplicate member "id"`},
		{"duplicate by escape", `{"jsonrpc":"2.0","id":1,"\u006dethod":"a","method":"b"}`, "null", `duplicate member "method"`},
		{"duplicate in params", `{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":1,"x":2}}`, "1", `params: duplicate member "x"`},
		{"duplicate in _meta", `{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"x":1,"x":2}}}`, "1", `params._meta: duplicate member "x"`},
		{"id true", `{"jsonrpc":"2.0","id":true,"method":"a"}`, "null", `id is neither`},
		{"id object", `{"jsonrpc":"2.0","id":{},"method":"a"}`, "null", `id is neither`},
		{"id null", `{"jsonrpc":"2.0","id":null,"method":"a"}`, "null", `id is neither`},
		{"params an array", `{"jsonrpc":"2.0","id":7,"method":"a","params":[1]}`, "7", `params is not an object`},
		{"params null", `{"jsonrpc":"2.0","id":7,"method":"a","params":null}`, "7", `params is not an object`},
		{"method a number", `{"jsonrpc":"2.0","id":7,"method":1}`, "7", `method is not a name`},
		{"nothing", `{"jsonrpc":"2.0","id":7}`, "7", `neither method nor result`},
		{"both", `{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"x"}}`, "7", `both result and error`},
		{"method and result", `{"jsonrpc":"2.0","id":7,"method":"a","result":{}}`, "7", `method beside`},
		{"error code a string", `{"jsonrpc":"2.0","id":7,"error":{"code":"1","message":"x"}}`, "7", `without an integer code`},
		{"batch", `[{"jsonrpc":"2.0","id":7,"method":"a"}]`, "null", `want one object`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Parse([]byte(tt.in), Options{UniqueParams: true})
			var ee *EnvelopeError
			if !errors.As(err, &ee) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("Parse(%s) = %v, want an EnvelopeError with %q", tt.in, err, tt.want)
			}
			if got := m.ID.String(); got != tt.id {
				t.Errorf("Parse(%s) id = %s, want %s", tt.in, got, tt.id)
			}
		})
	}
}

func TestF07IDsPassExactly(t *testing.T) {
	seen := map[ID]bool{}
	for _, id := range []string{`1`, `"1"`, `9007199254740993`, `-0`, `1.5`, `1e3`, `0`, `""`, `"a\u0062"`, `"ab"`} {
		m, err := Parse([]byte(`{"jsonrpc":"2.0","id":`+id+`,"method":"m"}`), Options{})
		if err != nil {
			t.Fatalf("Parse(id %s) = %v", id, err)
		}
		if got := string(AppendResult(nil, m.ID, []byte(`{}`), nil)); got != `{"jsonrpc":"2.0","id":`+id+`,"result":{}}` {
			t.Errorf("id %s came back as %s", id, got)
		}
		if seen[m.ID] {
			t.Errorf("id %s equals another id", id)
		}
		seen[m.ID] = true
	}
}

func TestF07UnknownMembersSurvive(t *testing.T) {
	in := `{"jsonrpc":"2.0","id":1,"method":"m","params":{"z":1.50,"a":{"deep":[1,2]}},"x-one":{"k":1},"x-two":"é"}`
	m, err := Parse([]byte(in), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(AppendRequest(nil, m.ID, m.Method, m.Params, m.Extra)); got != in {
		t.Errorf("request came back as\n%s, want\n%s", got, in)
	}
}

func TestParseKinds(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want Kind
	}{
		{`{"jsonrpc":"2.0","id":0,"method":"m"}`, Request},
		{`{"jsonrpc":"2.0","method":"m"}`, Notification},
		{`{"jsonrpc":"2.0","id":0,"result":{}}`, Response},
		{`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`, Response},
		{`{"jsonrpc":"2.0","error":{"code":-32000,"message":"x","data":[1]}}`, Response},
	} {
		m, err := Parse([]byte(tt.in), Options{})
		if err != nil || m.Kind() != tt.want {
			t.Errorf("Parse(%s) = kind %d, %v, want %d", tt.in, m.Kind(), err, tt.want)
		}
	}
}

func TestAppendErrorIsReadBack(t *testing.T) {
	want := &Error{Code: -32602, Message: "a \"b\"\n<c>", Data: json.RawMessage(`{"uri":"x"}`)}
	text := AppendError(nil, StringID("q"), want)
	m, err := Parse(text, Options{})
	if err != nil {
		t.Fatalf("Parse(%s) = %v", text, err)
	}
	if m.Error.Code != want.Code || m.Error.Message != want.Message || !bytes.Equal(m.Error.Data, want.Data) {
		t.Errorf("error came back as %+v, want %+v", m.Error, want)
	}
}

func TestAppendEdited(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		edits    []Edit
		want     string
	}{
		{"nothing", `{ "a" : 1 , "b":[ 1 ] }`, nil, `{"a":1,"b":[ 1 ]}`},
		{"remove", `{"a":1,"b":2}`, []Edit{{"a", nil}}, `{"b":2}`},
		{"remove all", `{"a":1}`, []Edit{{"a", nil}}, `{}`},
		{"replace in place", `{"a":1,"b":2}`, []Edit{{"a", []byte(`3`)}}, `{"a":3,"b":2}`},
		{"add", `{"a":1}`, []Edit{{"b", []byte(`{}`)}, {"c", []byte(`0`)}}, `{"a":1,"b":{},"c":0}`},
		{"remove what is not there", `{"a":1}`, []Edit{{"z", nil}}, `{"a":1}`},
		{"from nothing", ``, []Edit{{"a", []byte(`1`)}}, `{"a":1}`},
		{"from empty", `{}`, nil, `{}`},
		{"escaped name", `{"\u0061":1}`, []Edit{{"a", nil}}, `{}`},
		{"nested same name stays", `{"b":{"a":1},"a":2}`, []Edit{{"a", nil}}, `{"b":{"a":1}}`},
		{"braces in strings", `{"a":"}\\\"{","b":1}`, []Edit{{"b", nil}}, `{"a":"}\\\"{"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(AppendEdited(nil, []byte(tt.in), tt.edits...)); got != tt.want {
				t.Errorf("AppendEdited(%s) = %s, want %s", tt.in, got, tt.want)
			}
		})
	}
}

// What is not edited keeps its bytes, white space included.
func TestAppendReplaced(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		edits    []Edit
		want     string
	}{
		{"nothing", ` { "a" : 1 , "b":[ 1 ] } `, nil, ` { "a" : 1 , "b":[ 1 ] } `},
		{"two, in another order", "{ \"a\" : 1 ,\n \"x\": 1e2 , \"b\" :[ 1 ] }", []Edit{{"b", []byte(`2`)}, {"a", []byte(`"}"`)}}, "{ \"a\" : \"}\" ,\n \"x\": 1e2 , \"b\" :2 }"},
		{"add", `{"a":1 }`, []Edit{{"b", []byte(`{}`)}, {"a", []byte(`2`)}, {"c", []byte(`0`)}}, `{"a":2 ,"b":{},"c":0}`},
		{"add to an empty one", `{ }`, []Edit{{"a", []byte(`1`)}, {"b", []byte(`2`)}}, `{ "a":1,"b":2}`},
		{"from nothing", ``, []Edit{{"a", []byte(`1`)}}, `{"a":1}`},
		{"from an array", `[{"a":2}]`, []Edit{{"a", []byte(`1`)}}, `{"a":1}`},
		{"escaped name", `{"\u0061":1}`, []Edit{{"a", []byte(`2`)}}, `{"\u0061":2}`},
		{"twice", `{"a":1,"a":2}`, []Edit{{"a", []byte(`3`)}}, `{"a":3,"a":3}`},
		{"nested same name stays", `{"b":{"a":1},"a":2}`, []Edit{{"a", []byte(`3`)}}, `{"b":{"a":1},"a":3}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := []byte("~" + tt.in + "~")
			if got := string(AppendReplaced([]byte("+"), in[1:len(in)-1], tt.edits...)); got != "+"+tt.want {
				t.Errorf("AppendReplaced(%s) = %s, want +%s", tt.in, got, tt.want)
			}
		})
	}
}

func TestCheckUniqueManyMembers(t *testing.T) {
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, `"k%d":%d,`, i, i)
	}
	if err := CheckUnique([]byte(`{` + b.String() + `"last":0}`)); err != nil {
		t.Errorf("CheckUnique(distinct) = %v", err)
	}
	if err := CheckUnique([]byte(`{` + b.String() + `"k7":0}`)); err == nil {
		t.Error("CheckUnique(k7 twice) = nil, want an error")
	}
}

func FuzzCheck(f *testing.F) {
	for _, s := range []string{`{"a":[1,"x\\\"y",null]}`, "\"\xff\"", `[[]`, `{"a":1,"a":2}`, `1e5`, "\"\u2028\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := Check(data, 1000)
		std := json.Valid(data)
		if err == nil && !std {
			t.Fatalf("Check(%q) accepts what encoding/json refuses", data)
		}
		if err != nil && std && !strings.Contains(err.Error(), "UTF-8") && !strings.Contains(err.Error(), "deeply") {
			t.Fatalf("Check(%q) = %v, encoding/json accepts it", data, err)
		}
		if err != nil {
			return
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(data, &want) == nil && want != nil && CheckUnique(data) == nil {
			got := map[string]json.RawMessage{}
			for k, v := range Members(data) {
				got[k.String()] = bytes.Clone(v)
			}
			if len(got) != len(want) {
				t.Fatalf("Members(%q) = %q, want %q", data, got, want)
			}
			for k, v := range want {
				if !bytes.Equal(got[k], v) {
					t.Fatalf("Members(%q)[%q] = %q, want %q", data, k, got[k], v)
				}
			}
			if out := AppendEdited(nil, data); Check(out, 1000) != nil {
				t.Fatalf("AppendEdited(%q) = %q", data, out)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for _, n := range []int{100, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("result=%d", n), func(b *testing.B) {
			text := strings.Repeat("lorem ipsum dolor sit amet, ", n/28+1)[:n]
			msg := []byte(`{"jsonrpc":"2.0","id":12,"result":{"content":[{"type":"text","text":"` + text + `"}]}}`)
			b.SetBytes(int64(len(msg)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(msg, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestAppendCanonical(t *testing.T) {
	const want = `{"":null,"a":[1,{"x":1.50,"y":"é"},[]],"b":{}}`
	for _, in := range []string{
		`{"b":{},"a":[1,{"y":"é","x":1.50},[]],"":null}`,
		" { \"\" : null , \"a\" : [ 1 , {\"x\":1.50, \"y\":\"é\"},[ ] ],\n\"b\" : { } } ",
	} {
		if got := string(AppendCanonical(nil, []byte(in))); got != want {
			t.Errorf("AppendCanonical(%s) = %s, want %s", in, got, want)
		}
	}
}

func TestKeyIs(t *testing.T) {
	for _, key := range []string{`""`, `"a"`, `"\u0061"`, `"\\"`, `"\n"`, `"ab"`, `"é"`, `"\u00e9"`, `"\ud83d\ude00"`} {
		for _, name := range []string{"", "a", "b", `\`, `\\`, "\n", `\n`, "ab", "é", "😀", `\u0061`} {
			var want string
			if err := json.Unmarshal([]byte(key), &want); err != nil {
				t.Fatal(err)
			}
			if got := Key(key).Is(name); got != (want == name) {
				t.Errorf("Key(%s).Is(%q) = %v", key, name, got)
			}
		}
	}
}

func TestCloseArray(t *testing.T) {
	for in, want := range map[string]string{`[`: `[]`, `[1,`: `[1]`, `{"a":["x","y",`: `{"a":["x","y"]`} {
		if got := string(CloseArray([]byte(in))); got != want {
			t.Errorf("CloseArray(%s) = %s, want %s", in, got, want)
		}
	}
}

func TestEditedIn(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":1,"_meta":{ "b" : 2}}`: `{"a":1,"_meta":{"b":2,"c":3}}`,
		`{"a":1}`:                    `{"a":1,"_meta":{"c":3}}`,
		``:                           `{"_meta":{"c":3}}`,
	} {
		if got := EditedIn([]byte(in), "_meta", Edit{"c", []byte("3")}); string(got) != want {
			t.Errorf("EditedIn(%s) = %s, want %s", in, got, want)
		}
	}
}

func TestHasAny(t *testing.T) {
	for text, want := range map[string]bool{
		`{"a":1,"b":null}`: true, `{"c":{"a":1}}`: false, `{"\u0061":1}`: true, `{}`: false, `["a"]`: false, ``: false,
	} {
		if got := HasAny([]byte(text), "a", "b"); got != want {
			t.Errorf("HasAny(%s) = %v, want %v", text, got, want)
		}
	}
}

func TestWithout(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1, "c" : [ 2 ],"b":null}`: `{"c":[ 2 ]}`, `{"c":{"a":1}}`: `{"c":{"a":1}}`,
		`{"a":1,"b":2}`: "", `{ }`: "", `"a"`: "", `null`: "", ``: "",
	} {
		if got := Without([]byte(text), "a", "b"); string(got) != want || (got == nil) != (want == "") {
			t.Errorf("Without(%s) = %q, want %q", text, got, want)
		}
	}
}
