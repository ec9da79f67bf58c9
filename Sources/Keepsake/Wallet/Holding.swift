public import Foundation
import KeepsakeReplication

/// What one of the player's other devices holds of a currency, so that this device can't spend it now.
public struct Holding: Sendable, Hashable {
  /// The device's identifier, as `CloudDevice.id`; nil if the cloud doesn't know it.
  public var device: String?
  /// The device's name; nil if the cloud couldn't be asked for it, or doesn't know the device any more.
  public var name: String?
  /// The amount that only this device can spend.
  public var amount: Int64
  /// When the bank last heard of the device, by the server's clock, to within about two hours.
  public var lastSeen: Date

  /// Creates a holding.
  ///
  /// - Parameters:
  ///   - device: The device's identifier, if it is known.
  ///   - name: The device's name, if it is known.
  ///   - amount: The amount that only this device can spend.
  ///   - lastSeen: When the bank last heard of the device.
  public init(device: String?, name: String?, amount: Int64, lastSeen: Date) {
    (self.device, self.name, self.amount, self.lastSeen) = (device, name, amount, lastSeen)
  }
}

extension Holding {
  /// The most devices that a message lists.
  private static let maximumListed = 3

  init(_ holding: WalletHolding, names: [DeviceID: String]) {
    self.init(
      device: holding.device?.description, name: holding.device.flatMap { names[$0] }, amount: holding.amount,
      lastSeen: Date(timeIntervalSince1970: Double(holding.seenMilliseconds) / 1000))
  }

  /// Lists holdings in a sentence: `50 are on iPad, seen 2 days ago`.
  ///
  /// - Parameter now: The time by the server's clock.
  static func text(_ holdings: [Holding], now: Date) -> String {
    var parts = holdings.prefix(maximumListed).map { holding in
      let hours = Int(now.timeIntervalSince(holding.lastSeen) / 3_600)
      let seen =
        switch hours {
        case ..<2: "seen recently"
        case ..<48: "seen \(hours) hours ago"
        default: "seen \(hours / 24) days ago"
        }
      return "\(holding.amount) \(holding.amount == 1 ? "is" : "are") on \(holding.name ?? "another device"), \(seen)"
    }
    let rest = holdings.count - parts.count
    if rest > 0 { parts.append("the rest is on \(CountText.of(rest, "more device"))") }
    return parts.joined(separator: "; ")
  }
}
