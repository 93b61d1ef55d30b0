.PHONY: test lint gen sim bench

test:
	go test ./...

lint:
	golangci-lint run

gen:
	go generate ./...

sim:
	go test ./simtest -run TestSwarm -seeds=2000 -count=1 -timeout=20m

bench:
	go test -run='^$$' -bench=. -benchmem ./...
