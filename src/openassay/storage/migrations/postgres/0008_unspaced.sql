-- Chinese and Japanese are indexed by pairs of characters: files that have them are read again.
CREATE TEMPORARY TABLE unspaced ON COMMIT DROP AS
SELECT id, library, hash FROM library_documents WHERE title || text ~ '[぀-ヿ㐀-䶿一-鿿豈-﫿]';

WITH gone AS (
    DELETE FROM library_passages WHERE document IN (SELECT id FROM unspaced) RETURNING document, size, counted, words
),
lost AS (SELECT lexeme, sum(counted) AS n FROM gone, unnest(gone.words) WHERE counted > 0 GROUP BY lexeme),
less AS (UPDATE library_words SET passages = library_words.passages - lost.n FROM lost WHERE word = lexeme),
total AS (
    SELECT library, count(*) AS passages, sum(size) AS words
    FROM gone JOIN unspaced ON unspaced.id = gone.document GROUP BY library
)
UPDATE libraries SET passages = libraries.passages - total.passages, words = libraries.words - total.words
FROM total WHERE libraries.id = total.library;

DELETE FROM library_files USING unspaced
WHERE library_files.library = unspaced.library AND library_files.hash = unspaced.hash;

DELETE FROM library_documents WHERE id IN (SELECT id FROM unspaced);
