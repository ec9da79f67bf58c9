#if Cloud
import Testing

@testable import KeepsakeCommand

struct TimeTextTests {
  @Test(
    "a time is shown with its milliseconds, also before 1970, and as a plain number if it is out of range",
    arguments: [
      (5, "1970-01-01T00:00:00.005Z"), (0, "1970-01-01T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"),
      (1_795_267_200_123, "2026-11-21T13:20:00.123Z"), (Int64.max, "9223372036854775807 ms"),
      (.min, "-9223372036854775808 ms"),
    ] as [(Int64, String)])
  func iso(milliseconds: Int64, expected: String) {
    #expect(TimeText.iso(milliseconds: milliseconds) == expected)
  }
}
#endif
