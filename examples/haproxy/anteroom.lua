-- http-request lua.anteroom ROOM asks a node whether a request may go on, and says so in the transaction's variables:
--   txn.anteroom_status    200: yes; 302: no, the visitor belongs at txn.anteroom_location; else: it was not to be had
--   txn.anteroom_location
--   txn.anteroom_pass      for the site, in X-Anteroom-Pass
--   txn.anteroom_cookie    for the visitor, in Set-Cookie
-- It needs HAProxy 2.5 or newer, with Lua.

local asked = "http://127.0.0.1:8089/_anteroom/v1/rooms/"

-- Of one connection, of the body, and what the client sets itself.
local not_passed_on = {
	["connection"] = true, ["content-length"] = true, ["transfer-encoding"] = true, ["expect"] = true,
	["upgrade"] = true, ["te"] = true, ["keep-alive"] = true,
}

core.register_action("anteroom", { "http-req" }, function(txn, room)
	local headers = {}
	for name, values in pairs(txn.http:req_get_headers()) do
		if not not_passed_on[name] then
			headers[name] = {}
			for i = 0, #values do -- these tables begin at 0
				table.insert(headers[name], values[i])
			end
		end
	end
	local ok, answer = pcall(function()
		return core.httpclient():head({ url = asked .. room .. "/auth?proxy=haproxy", headers = headers })
	end)
	if not ok or not answer or not answer.status then
		txn:set_var("txn.anteroom_status", 503)
		return
	end
	local function first(name)
		local values = answer.headers and answer.headers[name]
		return values and (values[0] or values[1])
	end
	txn:set_var("txn.anteroom_status", answer.status)
	if answer.status == 302 then
		txn:set_var("txn.anteroom_location", first("location"))
	end
	if first("x-anteroom-pass") then
		txn:set_var("txn.anteroom_pass", first("x-anteroom-pass"))
	end
	if first("set-cookie") then
		txn:set_var("txn.anteroom_cookie", first("set-cookie"))
	end
end, 1)
