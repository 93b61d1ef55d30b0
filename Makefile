.PHONY: test lint gen sim bench bench-compare release site sbom reproducible vulnerabilities

test:
	go test -timeout 20m ./...

lint:
	golangci-lint run
	cd tools && golangci-lint run -c ../.golangci.yml
	cd caddy && golangci-lint run -c ../.golangci.yml

gen:
	go generate ./...

sim:
	go test ./simtest -run TestSwarm -seeds=2000 -count=1 -timeout=20m

# All of them take an hour or so. BENCH and PKG pick some, COUNT repeats them:
# make bench BENCH=Table62 PKG=./internal/load COUNT=10 > new.txt
BENCH = .
PKG = ./...
COUNT = 1
bench:
	go test -run='^$$' -bench='$(BENCH)' -benchmem -count=$(COUNT) -timeout=2h $(PKG)

# make bench-compare OLD=old.txt NEW=new.txt says what has changed, and how sure that is.
bench-compare:
	go tool -modfile=tools/go.mod benchstat $(OLD) $(NEW)

# What people install, of the commit that is checked out, into dist. KEY signs it.
KEY =
release:
	go -C tools run ./release --out ../dist $(if $(KEY),--key $(abspath $(KEY)))

# docs/ as a site, into dist/site/VERSION. The other versions there stay, and are listed.
site:
	tools/site/build

# What is in the program, as CycloneDX. The other two are steps of CI.
sbom:
	go build -trimpath -o dist/anteroom ./cmd/anteroom
	go tool supply sbom dist/anteroom > dist/anteroom.cdx.json

reproducible:
	.ci/reproducible

vulnerabilities:
	.ci/vulnerabilities
