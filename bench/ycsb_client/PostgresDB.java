import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyIn;
import site.ycsb.ByteIterator;
import site.ycsb.Client;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

/**
 * YCSB's binding to PostgreSQL: a record is a row, a field a column, an operation one prepared statement and one
 * transaction.  YCSB makes an instance for each of its threads.  Loading is one COPY a thread.
 *
 * Properties: postgres.url, as the JDBC driver takes it.
 */
public class PostgresDB extends DB {
  private static final String KEY = "ycsb_key";
  private static final int COPY_BYTES = 1 << 16; // sent at a time

  private final Map<String, PreparedStatement> statements = new HashMap<>();
  private Connection connection;
  private boolean loading;
  private CopyIn copy;
  private List<String> copied; // columns, in order
  private final StringBuilder rows = new StringBuilder(2 * COPY_BYTES);

  @Override
  public void init() throws DBException {
    loading = "false".equals(getProperties().getProperty(Client.DO_TRANSACTIONS_PROPERTY));
    try {
      connection = DriverManager.getConnection(getProperties().getProperty("postgres.url"));
    } catch (SQLException e) {
      throw new DBException(e);
    }
  }

  @Override
  public void cleanup() throws DBException {
    try {
      if (copy != null) {
        send();
        copy.endCopy();
      }
      connection.close();
    } catch (SQLException e) {
      throw new DBException(e);
    }
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    try {
      PreparedStatement statement = prepared(select(fields) + table + " WHERE " + KEY + " = ?");
      statement.setString(1, key);
      try (ResultSet row = statement.executeQuery()) {
        if (!row.next()) {
          return Status.NOT_FOUND;
        }
        take(row, result);
        return row.getString(1).equals(key) && !row.next() ? Status.OK : Status.UNEXPECTED_STATE;
      }
    } catch (SQLException e) {
      return failed(e);
    }
  }

  @Override
  public Status scan(String table, String startkey, int recordcount, Set<String> fields,
                     Vector<HashMap<String, ByteIterator>> result) {
    try {
      PreparedStatement statement = prepared(select(fields) + table + " WHERE " + KEY + " >= ? ORDER BY " + KEY
          + " LIMIT ?");
      statement.setString(1, startkey);
      statement.setInt(2, recordcount);
      try (ResultSet row = statement.executeQuery()) {
        while (row.next()) {
          // The key to begin with is always one that exists.
          if (result.isEmpty() && !row.getString(1).equals(startkey)) {
            return Status.UNEXPECTED_STATE;
          }
          HashMap<String, ByteIterator> record = new HashMap<>();
          take(row, record);
          result.add(record);
        }
      }
      return result.isEmpty() ? Status.NOT_FOUND : Status.OK;
    } catch (SQLException e) {
      return failed(e);
    }
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    List<String> names = new ArrayList<>(values.keySet());
    try {
      PreparedStatement statement = prepared("UPDATE " + table + " SET " + String.join(" = ?, ", names) + " = ? WHERE "
          + KEY + " = ?");
      bind(statement, 1, names, values);
      statement.setString(names.size() + 1, key);
      return one(statement);
    } catch (SQLException e) {
      return failed(e);
    }
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    try {
      if (loading) {
        return load(table, key, values);
      }
      List<String> names = new ArrayList<>(values.keySet());
      PreparedStatement statement = prepared("INSERT INTO " + table + " (" + KEY + ", " + String.join(", ", names)
          + ") VALUES (?" + ", ?".repeat(names.size()) + ")");
      statement.setString(1, key);
      bind(statement, 2, names, values);
      return one(statement);
    } catch (SQLException e) {
      return failed(e);
    }
  }

  @Override
  public Status delete(String table, String key) {
    try {
      PreparedStatement statement = prepared("DELETE FROM " + table + " WHERE " + KEY + " = ?");
      statement.setString(1, key);
      return one(statement);
    } catch (SQLException e) {
      return failed(e);
    }
  }

  private static String select(Set<String> fields) {
    return fields == null ? "SELECT * FROM " : "SELECT " + KEY + ", " + String.join(", ", fields) + " FROM ";
  }

  private PreparedStatement prepared(String sql) throws SQLException {
    PreparedStatement statement = statements.get(sql);
    if (statement == null) {
      statement = connection.prepareStatement(sql);
      statements.put(sql, statement);
    }
    return statement;
  }

  private static void bind(PreparedStatement statement, int first, List<String> names,
                           Map<String, ByteIterator> values) throws SQLException {
    for (int i = 0; i < names.size(); i++) {
      statement.setString(first + i, values.get(names.get(i)).toString());
    }
  }

  private static Status one(PreparedStatement statement) throws SQLException {
    return statement.executeUpdate() == 1 ? Status.OK : Status.NOT_FOUND;
  }

  private static void take(ResultSet row, Map<String, ByteIterator> record) throws SQLException {
    int columns = row.getMetaData().getColumnCount();
    for (int i = 2; i <= columns; i++) {
      record.put(row.getMetaData().getColumnLabel(i), new StringByteIterator(row.getString(i)));
    }
  }

  /** Adds a row to the thread's COPY.  YCSB's keys and values are printable ASCII. */
  private Status load(String table, String key, Map<String, ByteIterator> values) throws SQLException {
    if (copy == null) {
      copied = new ArrayList<>(values.keySet());
      copy = connection.unwrap(PGConnection.class).getCopyAPI().copyIn(
          "COPY " + table + " (" + KEY + ", " + String.join(", ", copied) + ") FROM STDIN");
    }
    rows.append(key);
    for (String name : copied) {
      rows.append('\t').append(values.get(name).toString().replace("\\", "\\\\"));
    }
    rows.append('\n');
    if (rows.length() >= COPY_BYTES) {
      send();
    }
    return Status.BATCHED_OK;
  }

  private void send() throws SQLException {
    byte[] bytes = rows.toString().getBytes(StandardCharsets.UTF_8);
    copy.writeToCopy(bytes, 0, bytes.length);
    rows.setLength(0);
  }

  private static Status failed(SQLException e) {
    System.err.println("PostgresDB: " + e.getMessage());
    return Status.ERROR;
  }
}
