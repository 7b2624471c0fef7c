-- Chinese and Japanese are indexed by pairs of characters: files that have them are read again.
INSERT INTO passages_fts (passages_fts, rowid, title, text)
SELECT 'delete', id, title, text FROM passages WHERE title || text GLOB '*[぀-ヿ㐀-䶿一-鿿豈-﫿]*';

UPDATE files SET document = NULL, metadata = NULL, size = -1
WHERE document IN (SELECT document FROM passages WHERE title || text GLOB '*[぀-ヿ㐀-䶿一-鿿豈-﫿]*');

DELETE FROM documents WHERE hash NOT IN (SELECT document FROM files WHERE document IS NOT NULL);
