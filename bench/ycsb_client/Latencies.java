import java.io.File;
import org.HdrHistogram.EncodableHistogram;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramLogReader;

/**
 * Reads the histogram logs that YCSB writes (hdrhistogram.fileoutput) from some time on.  Prints a line for each: the
 * operation, how many, and in microseconds mean and percentiles.
 *
 * Arguments: seconds since 1970 to begin with, percentiles with commas between them, files.
 */
public class Latencies {
  public static void main(String[] arguments) throws Exception {
    double from = Double.parseDouble(arguments[0]);
    String[] percentiles = arguments[1].split(",");
    for (int i = 2; i < arguments.length; i++) {
      File file = new File(arguments[i]);
      Histogram all = new Histogram(3);
      HistogramLogReader reader = new HistogramLogReader(file);
      EncodableHistogram interval;
      while ((interval = reader.nextAbsoluteIntervalHistogram(from, Double.MAX_VALUE)) != null) {
        all.add((Histogram) interval);
      }
      StringBuilder line = new StringBuilder(file.getName().replaceAll("\\.hdr$", ""));
      line.append(' ').append(all.getTotalCount()).append(' ').append(all.getMean());
      for (String percentile : percentiles) {
        line.append(' ').append(all.getValueAtPercentile(Double.parseDouble(percentile)));
      }
      System.out.println(line);
    }
  }
}
