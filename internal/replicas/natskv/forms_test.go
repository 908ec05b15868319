package natskv

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// Replicas of all versions use the same buckets, and records as each of them wrote them.
func TestForms(t *testing.T) {
	forms, s := bridgetest.ReadForms(t), &Store{prefix: "mcpbridge"}
	forms.Want("buckets", strings.Join([]string{s.bucketName("members"), s.bucketName("claims"), s.bucketName("records")}, " "))
	forms.Want("kept", s.bucketName(keptBucket))
	forms.Want("record", hex.EncodeToString(wrapRecord([]byte(`{"at":"AAAAAAAA"}`), time.Hour)))
	value, err := hex.DecodeString(forms.Text("record"))
	if err != nil {
		t.Fatal(err)
	}
	if record, ttl, ok := unwrapRecord(value); !ok || ttl != time.Hour || string(record) != `{"at":"AAAAAAAA"}` {
		t.Errorf("a record is read as %s for %v, %v", record, ttl, ok)
	}
	if _, _, ok := unwrapRecord(value[:7]); ok {
		t.Error("what is no record is read as one")
	}
}
