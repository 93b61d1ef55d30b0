package wire_test

import (
	"testing"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/proto/wire"
	"github.com/anteroom/anteroom/simtest"
)

// TestSimulatedWorldDoesNotNoticeTheWire runs worlds of the swarm with and
// without the codec between their nodes. One difference that any node acts on,
// an empty list for an absent one for example, and the traces part.
func TestSimulatedWorldDoesNotNoticeTheWire(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() {
		seeds = 4
	}
	kinds := map[string]int{}
	for seed := uint64(1); seed <= seeds; seed++ {
		o := simtest.Swarm(seed)
		plain, plainErr := simtest.Run(o)
		o.Wire = func(m eviction.Message) (eviction.Message, error) {
			data, err := wire.Marshal(m.Body)
			if err != nil {
				return m, err
			}
			kinds[m.Body.Kind()]++
			m.Body, err = wire.Unmarshal(data)
			return m, err
		}
		coded, codedErr := simtest.Run(o)
		if plain.Hash != coded.Hash || (plainErr == nil) != (codedErr == nil) {
			t.Errorf("seed %d: trace %016x (%v), through the wire %016x (%v)", seed, plain.Hash, plainErr, coded.Hash, codedErr)
		}
	}
	for _, b := range bodies() {
		if kinds[b.Kind()] == 0 && !testing.Short() {
			t.Errorf("no %s crossed the wire", b.Kind())
		}
	}
}
