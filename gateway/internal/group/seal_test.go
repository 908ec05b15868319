package group

import "testing"

func TestG12SealedForGroupAndKind(t *testing.T) {
	r, other := newRig(t, nil, newFake("files")), newRig(t, func(o *Options) { o.Name = "others" }, newFake("files"))
	text := r.sealing.seal(sealedTask, "files", "id:~7")
	if again := r.sealing.seal(sealedTask, "files", "id:~7"); again != text {
		t.Errorf("sealed again it is %s, not %s", again, text)
	}
	if m, inner, err := r.sealing.open(sealedTask, text); err != nil || m != "files" || inner != "id:~7" {
		t.Errorf("open = %q, %q, %v", m, inner, err)
	}
	for _, bad := range []struct {
		of   *rig
		kind byte
		text string
	}{{r, sealedState, text}, {other, sealedTask, text}, {r, sealedTask, "docs" + text[5:]}, {r, sealedTask, "id:~7"}, {r, sealedTask, ""}} {
		if m, inner, err := bad.of.sealing.open(bad.kind, bad.text); err == nil {
			t.Errorf("open(%c, %s) = %q, %q", bad.kind, bad.text, m, inner)
		}
	}
}
