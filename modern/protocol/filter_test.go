package protocol

import "testing"

func TestM2L30Filters(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`{}`, `{}`},
		{`{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}`, `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}`},
		{`{"toolsListChanged":false,"promptsListChanged":null,"resourceSubscriptions":[]}`, `{}`},
		{`{"resourceSubscriptions":null,"com.example/x":{"a":1}}`, `{}`},
		{`{"resourceSubscriptions":["a:b","","a:b","a:\u0063"]}`, `{"resourceSubscriptions":["a:b","a:c"]}`},
		{`{"resourceSubscriptions":["a:b"],"promptsListChanged":true}`, `{"promptsListChanged":true,"resourceSubscriptions":["a:b"]}`},
	} {
		f, err := ReadFilter([]byte(tt.in))
		if got := string(AppendFilter(nil, f)); err != nil || got != tt.want {
			t.Errorf("filter %s = %s, %v, want %s", tt.in, got, err, tt.want)
		}
	}
	for _, in := range []string{``, `[]`, `{"toolsListChanged":1}`, `{"promptsListChanged":"true"}`, `{"resourceSubscriptions":"a:b"}`, `{"resourceSubscriptions":["a:b",1]}`} {
		if f, err := ReadFilter([]byte(in)); err == nil {
			t.Errorf("ReadFilter(%s) = %+v, want an error", in, f)
		}
	}
}
