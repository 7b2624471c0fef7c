-- What the index is of: the folder, whether somebody wants it to stay, and the model its vectors are of.
CREATE TABLE about (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT;

-- 16-bit floats, one after the other.
CREATE TABLE vectors (
    passage INTEGER PRIMARY KEY REFERENCES passages (id) ON DELETE CASCADE,
    vector BLOB NOT NULL
) STRICT;
