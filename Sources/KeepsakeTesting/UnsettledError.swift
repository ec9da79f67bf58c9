/// Why a world does not come to rest: who still owes what, and what keeps them from it.
public struct UnsettledError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What one device and the cloud still owe each other.
  public struct Debt: Sendable, Hashable, CustomStringConvertible {
    /// The device's name.
    public let device: String
    /// Saves, values and checkpoints that aren't certain in the cloud, refused ones included.
    public let unsentCommits: Int
    /// Why the cloud refused some of them, in sentences.
    public let refusals: [String]
    /// Whether the bank doesn't know yet all that was done with the money.
    public let hasUnreportedMoney: Bool
    /// Whether the cloud has something that the device hasn't shown yet.
    public let isBehind: Bool
    /// What went wrong in the last try; nil if nothing did.
    public let failure: String?

    public var description: String {
      var parts: [String] = []
      if unsentCommits > 0 { parts.append("owes \(unsentCommits) \(unsentCommits == 1 ? "commit" : "commits")") }
      if hasUnreportedMoney { parts.append("has operations with money that the bank doesn't know") }
      if isBehind { parts.append("hasn't heard all that the cloud has") }
      parts += refusals.map { "was refused: \($0)" }
      if let failure { parts.append(failure) }
      return "\(device) " + (parts.isEmpty ? "goes on changing" : parts.joined(separator: "; "))
    }
  }

  /// One for each device that owes or is owed something, by name.
  public let debts: [Debt]

  public var description: String { "The world does not come to rest: " + debts.map(\.description).joined(separator: ". ") + "." }
}
