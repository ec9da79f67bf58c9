#if Cloud
import Testing

@testable import KeepsakeCommand

struct ByteSizeTests {
  @Test(
    "a size with or without a unit is read as its number of bytes",
    arguments: [
      ("1", 1), ("1500", 1_500), ("64K", 65_536), ("10m", 10_485_760), ("1.5G", 1_610_612_736),
      ("2 TiB", 2_199_023_255_552),
      ("7MB", 7_340_032),
      ("9223372036854775807", .max), ("12b", 12),
    ] as [(String, Int64)])
  func sizes(text: String, bytes: Int64) {
    #expect(ByteSize(argument: text)?.bytes == bytes)
  }

  @Test(
    "text that isn't a valid size is refused",
    arguments: [
      "", "0", "-1", "1.5", "G", "1X", "1GG", "0.0K", "9223372036854775808", "9223372036854775807K", "1e3", "1..5M",
      "nan", "٣M",
      "99999999999.5T",
    ])
  func noSizes(text: String) {
    #expect(ByteSize(argument: text) == nil)
  }
}
#endif
