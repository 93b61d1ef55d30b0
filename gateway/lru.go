package gateway

import "container/list"

// lru is a map that forgets what was not used for longest. It is not safe for
// concurrent use.
type lru[K comparable, V any] struct {
	most  int
	items map[K]*list.Element
	order *list.List // of *entry, the last used in front
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

func newLRU[K comparable, V any](most int) *lru[K, V] {
	return &lru[K, V]{most: most, items: make(map[K]*list.Element), order: list.New()}
}

// at returns the value of key, to be changed in place; nil if there is none.
func (l *lru[K, V]) at(key K) *V {
	e := l.items[key]
	if e == nil {
		return nil
	}
	l.order.MoveToFront(e)
	return &e.Value.(*entry[K, V]).value
}

func (l *lru[K, V]) put(key K, value V) {
	if v := l.at(key); v != nil {
		*v = value
		return
	}
	if len(l.items) >= l.most {
		oldest := l.order.Back()
		l.order.Remove(oldest)
		delete(l.items, oldest.Value.(*entry[K, V]).key)
	}
	l.items[key] = l.order.PushFront(&entry[K, V]{key, value})
}

func (l *lru[K, V]) remove(key K) {
	if e := l.items[key]; e != nil {
		l.order.Remove(e)
		delete(l.items, key)
	}
}
