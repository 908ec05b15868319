package rediskv

import (
	"context"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
)

// What others write below the prefix is bounded where it is, since a client reads an answer as
// a whole.

// members returns how many records are skipped, and then the others, each after its instance. If
// there are too many, those are read that end last: a replica writes each second, or somewhat less often. An
// end that is too late was written by none. Lengths are asked for first: a record of 60 MiB would
// be copied several times each second, for which a busy machine has no time.
var members = redis.NewScript(`
local out, names, size = {0}, {}, redis.call('HLEN', KEYS[1])
if size <= tonumber(ARGV[2]) then
	names = redis.call('HKEYS', KEYS[1])
else
	local t = redis.call('TIME')
	local latest = t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[3]
	names = redis.call('ZREVRANGEBYSCORE', KEYS[2], latest, '-inf', 'LIMIT', 0, ARGV[2])
end
for i, name in ipairs(names) do
	local length = redis.call('HSTRLEN', KEYS[1], name)
	if length > 0 and #name + length <= tonumber(ARGV[1]) then
		out[#out + 1] = name
		out[#out + 1] = redis.call('HGET', KEYS[1], name)
	end
end
out[1] = tostring(size - (#out - 1) / 2)
return out`)

func (s *Store) readMembers(ctx context.Context, snap *member.Snapshot) error {
	keys := []string{s.key("members"), s.key("ends")}
	told, err := members.Run(ctx, s.client, keys, replicas.MaxMember, replicas.MaxMembers, replicas.Pace(replicas.SlowestHeartbeat).Patience().Milliseconds()).StringSlice()
	if err != nil {
		return wrap(err)
	}
	for pair := range slices.Chunk(told[1:], 2) {
		snap.Members[pair[0]] = []byte(pair[1])
	}
	skipped, err := strconv.Atoi(told[0])
	snap.Skipped.Add(skipped, "Redis, "+keys[0])
	return err
}

// claims is MGET, with an empty value for what is too large.
var claims = redis.NewScript(`
local all = redis.call('MGET', unpack(KEYS))
for i, value in ipairs(all) do
	if value and #value > tonumber(ARGV[1]) then all[i] = '' end
end
return all`)

// each calls f with those claims that exist, by their keys at Redis. One that is too large has
// no value.
func (s *Store) each(ctx context.Context, keys []string, f func(string, member.Entry)) error {
	for some := range slices.Chunk(keys, atOnce) {
		values, err := claims.Run(ctx, s.client, some, replicas.MaxClaim).Slice()
		if err != nil {
			return wrap(err)
		}
		for i, value := range values {
			if text, kept := value.(string); kept {
				f(some[i][len(s.claimKey("")):], member.Entry{Value: text})
			}
		}
	}
	return nil
}
