/// A device's store that is older than what the device has reported: an old copy of it was put back.
///
/// A request that arrives late looks the same. The cloud tells the device in its response, and the device repeats it in
/// its next requests: of a late request, nobody gets the response.
package struct SetBack: Hashable, Sendable, Codable {
  /// The seq of the cursor that the device had reported.
  package var from: UInt64
  /// The seq of its cursor now.
  package var to: UInt64

  package init(from: UInt64, to: UInt64) {
    self.from = from
    self.to = to
  }
}

extension Refusal {
  /// The refusal of everything that a device sends which is marked as set back.
  static let asSetBack = Refusal(
    item: everything, reason: .setBack,
    message: """
      this device's data went back to an older state, and the game's studio takes nothing that it saves until the \
      studio has looked at it: contact the studio
      """)
}

/// What a device is told about itself while the cloud has it marked as set back, if the operator wants that.
package struct SetBackMark: Hashable, Sendable, Codable {
  /// When that was noticed last, by the server's clock, in milliseconds since 1970.
  package var atMilliseconds: Int64
  /// Whether the cloud takes no cells and versions of this device until the mark is removed.
  package var isRefused: Bool

  package init(atMilliseconds: Int64, isRefused: Bool) {
    self.atMilliseconds = atMilliseconds
    self.isRefused = isRefused
  }

  private enum CodingKeys: String, CodingKey {
    case atMilliseconds
    case isRefused = "refused"
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    atMilliseconds = try container.decode(Int64.self, forKey: .atMilliseconds)
    isRefused = try container.decodeFlag(forKey: .isRefused)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(atMilliseconds, forKey: .atMilliseconds)
    try container.encodeIfTrue(isRefused, forKey: .isRefused)
  }
}
