-- For who reads egret.committed: what keys and values are, as docs/trident-rules.md has it.
-- Nothing of Egret calls them. Run again, this file changes nothing.

CREATE OR REPLACE FUNCTION egret.uvarint(n numeric) RETURNS bytea LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
	b bytea := '';
BEGIN
	WHILE n >= 128 LOOP
		b := b || set_byte('\x00', 0, mod(n, 128)::int + 128);
		n := div(n, 128);
	END LOOP;
	RETURN b || set_byte('\x00', 0, n::int);
END $$;

-- A field of a key. A key of several is them, by ||, in the order of the Go type.
CREATE OR REPLACE FUNCTION egret.text_key(t text) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT '\x05'::bytea || egret.uvarint(octet_length(convert_to(t, 'UTF8'))) || convert_to(t, 'UTF8')
$$;
CREATE OR REPLACE FUNCTION egret.int_key(n bigint) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT '\x02'::bytea || egret.uvarint(CASE WHEN n < 0 THEN n::numeric * -2 - 1 ELSE n::numeric * 2 END)
$$;

-- The fields of a key or of a value, as text: NULL where there is nil, bytes and what a
-- codec makes in hex, durations in nanoseconds, times as in 2026-11-30T07:00:00.000000000Z.
CREATE OR REPLACE FUNCTION egret.fields(b bytea) RETURNS text[] LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
	all_fields text[] := '{}';
	at int := 0;
	kind int;
	n numeric;
	f numeric;
	bits bigint;
	field text;
BEGIN
	WHILE at < length(b) LOOP
		kind := get_byte(b, at);
		at := at + 1;
		n := 0;
		f := 1;
		IF kind IN (2, 3, 5, 6, 8, 9) THEN -- begins with a varint
			LOOP
				n := n + (get_byte(b, at) & 127) * f;
				f := f * 128;
				at := at + 1;
				EXIT WHEN get_byte(b, at - 1) < 128;
			END LOOP;
		ELSIF kind IN (4, 7) THEN -- 8 bytes
			bits := 0;
			FOR i IN REVERSE 7..0 LOOP
				bits := (bits << 8) | get_byte(b, at + i);
			END LOOP;
			at := at + 8;
		END IF;
		CASE kind
		WHEN 0 THEN
			field := NULL;
		WHEN 1 THEN
			field := (get_byte(b, at) = 1)::text;
			at := at + 1;
		WHEN 2, 8 THEN
			field := CASE WHEN mod(n, 2) = 1 THEN -div(n + 1, 2) ELSE div(n, 2) END;
		WHEN 3 THEN
			field := n;
		WHEN 4 THEN
			field := egret.float(bits);
		WHEN 7 THEN
			n := floor(bits::numeric / 1000);
			field := to_char(timestamp '1970-01-01' + (n * interval '1 microsecond'), 'YYYY-MM-DD"T"HH24:MI:SS.US')
				|| lpad((bits - n * 1000)::text, 3, '0') || 'Z';
		WHEN 5, 6, 9 THEN
			IF at + n > length(b) THEN
				RAISE EXCEPTION 'no key or value of Egret: % is cut off', b;
			END IF;
			field := CASE kind WHEN 5 THEN convert_from(substr(b, at + 1, n::int), 'UTF8') ELSE encode(substr(b, at + 1, n::int), 'hex') END;
			at := at + n::int;
		ELSE
			RAISE EXCEPTION 'no key or value of Egret: % has a field of kind %', b, kind;
		END CASE;
		all_fields := all_fields || field;
	END LOOP;
	RETURN all_fields;
END $$;

CREATE OR REPLACE FUNCTION egret.float(bits bigint) RETURNS float8 LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
	exponent int := (bits >> 52) & 2047;
	mantissa bigint := bits & ((1::bigint << 52) - 1);
	sign float8 := CASE WHEN bits < 0 THEN -1 ELSE 1 END;
BEGIN
	IF exponent = 2047 THEN
		RETURN CASE WHEN mantissa <> 0 THEN 'NaN'::float8 ELSE sign * 'Infinity'::float8 END;
	END IF;
	IF exponent > 0 THEN
		mantissa := mantissa + (1::bigint << 52);
	END IF;
	RETURN sign * mantissa * power(2::float8, greatest(exponent, 1) - 1075);
END $$;
